-- What in the edges of one scope breaks a promise.
-- reads   edges, memories (memory_id), allowed (name, value)
-- writes  row_id, reason; one row per breach
with
ends as (
    select edge_id, source_id as memory_id from edges
    union all
    select edge_id, target_id from edges
),
breaches as (
    select
        edge_id as row_id,
        'its key is there twice' as reason
    from edges
    group by edge_id
    having count(*) > 1
    union all
    select edge_id, 'unknown edge type'
    from edges
    where edge_type not in (select value from allowed where name = 'edge_type')
    union all
    select edge_id, 'strength outside 0 to 1'
    from edges
    where not strength between 0 and 1
    union all
    select edge_id, 'leads to itself'
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
from breaches
order by row_id, reason
