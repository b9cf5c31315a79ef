-- What time has done to each memory: its confidence now, and whether it has left the active ones.
-- reads   memories (as folded, with centrality), memory_types
-- params  $now (UTC instant), $half_life_growth, $frequent_access_count, $central_above_centrality,
--         $archive_below_confidence, $archive_grace_days, $prune_after_days
-- writes  memory_id, confidence (fraction, 0 to 1), status, archived_at (UTC instant or null); one row per memory
with
paced as (
    select
        memories.*,
        case
            when memories.is_pinned then null
            else memory_types.half_life_days
                * case when memories.access_count > $frequent_access_count then $half_life_growth else 1 end
                * case when memories.centrality > $central_above_centrality then $half_life_growth else 1 end
        end as half_life_days
    from memories
    join memory_types using (memory_type)
),
faded as (
    select
        *,
        case
            when half_life_days is null then initial_confidence
            else initial_confidence
                * pow(0.5, greatest(epoch($now::timestamptz) - epoch(updated_at), 0) / 86400 / half_life_days)
        end as confidence_now,
        -- The moment confidence fell below the limit is known without having watched it.
        case
            when is_pinned then null
            when initial_confidence < $archive_below_confidence then updated_at
            when half_life_days is null then null
            -- A limit of 0 archives nothing; after a century (in days) an instant could overflow.
            else updated_at + to_microseconds((
                least(half_life_days * log2(initial_confidence / nullif($archive_below_confidence, 0)), 36500)
                * 86400000000
            )::bigint)
        end as fading_since
    from paced
),
-- A recall while fading, or while archived, starts the days of grace again: an archived memory is active again.
dated as (
    select
        *,
        case
            when status = 'archived' then coalesce(archived_at, updated_at)
            -- `greatest` skips nulls, and what never fades never leaves, recalled or not.
            when fading_since is null then null
            else greatest(fading_since, coalesce(last_accessed_at, fading_since))
                + to_microseconds(($archive_grace_days * 86400000000)::bigint)
        end as leaves_at
    from faded
),
due as (
    select
        *,
        -- Merged originals are kept for good: a consolidation can be undone (spec 9.1).
        case
            when is_pinned or merged_into is not null or leaves_at is null then null
            else greatest(leaves_at, coalesce(last_accessed_at, leaves_at))
                + to_microseconds(($prune_after_days * 86400000000)::bigint)
        end as vanishes_at
    from dated
)
select
    memory_id,
    confidence_now as confidence,
    case
        when status not in ('active', 'archived') then status
        when vanishes_at <= $now::timestamptz then 'pruned'
        when status = 'archived' or leaves_at <= $now::timestamptz then 'archived'
        else 'active'
    end as status,
    case
        when status = 'active' and leaves_at > $now::timestamptz then null
        when status in ('active', 'archived') then leaves_at
        else archived_at
    end as archived_at
from due
order by memory_id
