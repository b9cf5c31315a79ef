-- How much each memory weighs when there is no room for all of them (spec 10.1).
-- reads   memories (memory_id, project_id, confidence, priority, centrality, access_count)
-- params  $rank_weight_confidence, $rank_weight_priority, $rank_weight_centrality, $rank_weight_access, $priority_max
-- writes  memory_id, rank (fraction, 0 to 1); one row per memory
select
    memory_id,
    $rank_weight_confidence * confidence
        + $rank_weight_priority * priority / $priority_max
        + $rank_weight_centrality * centrality
        -- The scope's most recalled memory sets the scale; if none was recalled, nothing is added.
        + $rank_weight_access
            * coalesce(ln(access_count + 1) / nullif(max(ln(access_count + 1)) over (partition by project_id), 0), 0)
        as rank
from memories
order by memory_id
