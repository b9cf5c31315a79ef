-- What time has done to each memory: its confidence now, whether it is weak, whether it is still active.
-- reads   memories (as folded, with centrality), memory_types, clock (as project_clock writes it),
--         weak (memory_id, weak_since)
-- params  $now (UTC instant), $half_life_growth, $frequent_access_count, $central_above_centrality,
--         $archive_below_confidence, $archive_grace_days, $prune_after_days
-- writes  memory_id, confidence (fraction, 0 to 1), status, archived_at (UTC instant or null), is_weak,
--         weak_since (UTC instant or null: not found weak before), is_due (to be pruned); one row per memory
with
-- A memory counts as weak since a run found it so, never by calculating back, and no longer once it is said or edited.
known as (
    select
        memories.*,
        case when weak.weak_since >= least(updated_at, $now::timestamptz) then weak.weak_since end as weak_since
    from memories
    left join weak using (memory_id)
),
paced as (
    select
        known.*,
        case
            when known.is_pinned then null
            else memory_types.half_life_days
                * case when known.access_count > $frequent_access_count then $half_life_growth else 1 end
                * case when known.centrality > $central_above_centrality then $half_life_growth else 1 end
        end as half_life_days,
        -- Days of grace begin with each of these; a recall restarts them (`greatest` skips nulls).
        greatest(
            case when known.status = 'archived' then coalesce(known.archived_at, known.updated_at) else known.weak_since end,
            known.last_accessed_at
        ) as untouched_since
    from known
    join memory_types using (memory_type)
),
present as (
    select
        project_id,
        max(worked_us) as worked_us
    from clock
    group by project_id
),
-- Where no clock runs, nothing grows older.
timed as (
    select
        paced.*,
        coalesce(present.worked_us, 0) as now_us,
        coalesce(said.worked_us + least(epoch_us(paced.updated_at) - epoch_us(said.active_at), said.runs_us), 0) as said_us
    from paced
    left join present using (project_id)
    asof left join clock as said
        on paced.project_id = said.project_id and paced.updated_at >= said.active_at
),
rested as (
    select
        timed.*,
        coalesce(
            touched.worked_us + least(epoch_us(timed.untouched_since) - epoch_us(touched.active_at), touched.runs_us), 0
        ) as untouched_us
    from timed
    asof left join clock as touched
        on timed.project_id = touched.project_id and timed.untouched_since >= touched.active_at
),
faded as (
    select
        *,
        case
            when half_life_days is null then initial_confidence
            else initial_confidence * pow(0.5, greatest(now_us - said_us, 0) / 86400000000.0 / half_life_days)
        end as confidence_now,
        ($archive_grace_days * 86400000000)::bigint as grace_us,
        ($prune_after_days * 86400000000)::bigint as prune_us
    from rested
),
judged as (
    select
        *,
        confidence_now < $archive_below_confidence
            and not is_pinned
            and merged_into is null
            and status in ('active', 'archived') as is_weak,
        -- Archived by a person, or by an earlier nightly run.
        status = 'archived' as was_archived
    from faded
),
aged as (
    select
        *,
        not was_archived
            and status = 'active'
            and is_weak
            and weak_since is not null
            and now_us - untouched_us >= grace_us as is_archived_now
    from judged
)
select
    aged.memory_id,
    confidence_now as confidence,
    case when is_archived_now then 'archived' else status end as status,
    case
        when is_archived_now then left_at.active_at + to_microseconds(untouched_us + grace_us - left_at.worked_us)
        when status = 'active' then null
        else archived_at
    end as archived_at,
    is_weak,
    weak_since,
    -- Merged originals are kept for good: a consolidation can be undone (spec 9.1).
    case
        when is_pinned or merged_into is not null then false
        when was_archived then now_us - untouched_us >= prune_us
        else is_archived_now and now_us - untouched_us >= grace_us + prune_us
    end as is_due
from aged
asof left join clock as left_at
    on aged.project_id = left_at.project_id and aged.untouched_us + aged.grace_us >= left_at.worked_us
order by aged.memory_id
