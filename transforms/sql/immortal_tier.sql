-- How many sessions have passed without a memory being used, and how much room an immortal one gets: its full
-- text, one line, or decisions-archive.md (spec 8.4).
-- reads   memories (aged and ranked), sessions (project_id, session_id, started_at), event_types
-- params  $immortal_full_sessions, $immortal_short_sessions, $immortal_full_max, $immortal_short_max
-- writes  memory_id, sessions_since (count), tier ('full', 'short' or 'archive'; null if not immortal);
--         one row per active memory
with
-- A memory of scope 'global' has lived through every project's sessions.
scoped_sessions as (
    select
        project_id,
        started_at
    from sessions
    union all
    select
        'global' as project_id,
        started_at
    from sessions
),
numbered as (
    select
        project_id,
        started_at,
        row_number() over (partition by project_id order by started_at) as position
    from scoped_sessions
),
totals as (
    select
        project_id,
        count(*) as session_count
    from numbered
    group by project_id
),
begun as (
    select
        project_id,
        started_at,
        max(position) as position
    from numbered
    group by all
),
touched as (
    select
        memory_id,
        project_id,
        is_pinned,
        rank,
        memory_type in (select memory_type from event_types where is_immortal) as is_immortal,
        -- An access promotes: the sessions are counted from the last time it was said or recalled.
        greatest(updated_at, coalesce(last_accessed_at, updated_at)) as touched_at
    from memories
    where status = 'active'
),
aged as (
    select
        touched.*,
        coalesce(totals.session_count, 0) - coalesce(begun.position, 0) as sessions_since
    from touched
    left join totals using (project_id)
    asof left join begun
        on touched.project_id = begun.project_id and touched.touched_at >= begun.started_at
),
by_age as (
    select
        *,
        case
            when not is_immortal then null
            when is_pinned or sessions_since < $immortal_full_sessions then 'full'
            when sessions_since < $immortal_short_sessions then 'short'
            else 'archive'
        end as age_tier
    from aged
),
with_full_cap as (
    select
        *,
        case
            when age_tier is null or age_tier <> 'full' then age_tier
            when row_number() over (
                partition by project_id, age_tier order by is_pinned desc, touched_at desc, rank desc, memory_id
            ) <= $immortal_full_max then 'full'
            else 'short'
        end as full_tier
    from by_age
)
select
    memory_id,
    sessions_since::integer as sessions_since,
    case
        when full_tier is null or full_tier <> 'short' then full_tier
        when row_number() over (
            partition by project_id, full_tier order by is_pinned desc, touched_at desc, rank desc, memory_id
        ) <= $immortal_short_max then 'short'
        else 'archive'
    end as tier
from with_full_cap
order by memory_id
