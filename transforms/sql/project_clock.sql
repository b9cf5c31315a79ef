-- A project's clock: how long it had been worked on at each instant of activity, without pauses (spec 8.1).
-- reads   activity (project_id, active_at)
-- params  $now (UTC instant), $clock_pause_days
-- writes  project_id, active_at (UTC instant), worked_us (microseconds up to there), runs_us (microseconds that
--         the clock runs on after it before it stands still; 0 at the last); one row per instant
with
marks as (
    select distinct
        project_id,
        least(active_at, $now::timestamptz) as active_at
    from activity
),
-- Whole microseconds: sums of them do not depend on how many rows follow.
paced as (
    select
        project_id,
        active_at,
        least(
            epoch_us(lead(active_at, 1, active_at) over (partition by project_id order by active_at))
                - epoch_us(active_at),
            ($clock_pause_days * 86400000000)::bigint
        ) as runs_us
    from marks
)
select
    project_id,
    active_at,
    (sum(runs_us) over (partition by project_id order by active_at) - runs_us)::bigint as worked_us,
    runs_us
from paced
order by project_id, active_at
