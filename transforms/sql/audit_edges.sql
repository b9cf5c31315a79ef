-- Edges of one scope that lead nowhere, lead to themselves, or supersede without a person's decision.
-- reads   edges, memories (memory_id)
-- writes  row_id, reason; one row per violation
with
ends as (
    select edge_id, source_id as memory_id from edges
    union all
    select edge_id, target_id from edges
),
violations as (
    select
        edge_id as row_id,
        'leads to itself' as reason
    from edges
    where source_id = target_id
    union all
    select distinct edge_id, 'orphan: an end is no memory'
    from ends
    anti join memories using (memory_id)
    union all
    -- Spec 9.2: nothing is ever superseded by a model or a rule.
    select edge_id, 'supersedes, and no person said so'
    from edges
    where edge_type = 'supersedes' and rule <> 'person'
)
select
    row_id,
    reason
from violations
order by row_id, reason
