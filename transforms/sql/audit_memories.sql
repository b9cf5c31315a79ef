-- What in the memories of one scope breaks a promise.
-- reads   memories, allowed (name, value)
-- params  $scope (project id or 'global')
-- writes  row_id, reason; one row per breach
with
breaches as (
    select
        memory_id as row_id,
        'its key is there twice' as reason
    from memories
    group by memory_id
    having count(*) > 1
    union all
    select memory_id, 'of another scope'
    from memories
    where project_id <> $scope
    union all
    select memory_id, 'unknown memory type'
    from memories
    where memory_type not in (select value from allowed where name = 'memory_type')
    union all
    select memory_id, 'unknown category'
    from memories
    where category not in (select value from allowed where name = 'category')
    union all
    select memory_id, 'unknown status'
    from memories
    where status not in (select value from allowed where name = 'status')
    union all
    select memory_id, 'unknown source type'
    from memories
    where source_type not in (select value from allowed where name = 'source_type')
    union all
    select memory_id, 'unknown trust'
    from memories
    where trust not in (select value from allowed where name = 'trust')
    union all
    -- Not a number sorts above all numbers, so `between` catches it too.
    select memory_id, 'confidence outside 0 to 1'
    from memories
    where not (confidence between 0 and 1 and initial_confidence between 0 and 1)
    union all
    select memory_id, 'rank, centrality or salience outside 0 to 1'
    from memories
    where not (rank between 0 and 1 and centrality between 0 and 1 and salience between 0 and 1)
    union all
    select memory_id, 'no text'
    from memories
    where trim(text) = '' and status <> 'pruned'
    union all
    select memory_id, 'text of a private section'
    from memories
    where contains(lower(text), '<private>')
        or contains(lower(reason), '<private>')
        or contains(lower(rejected), '<private>')
)
select
    row_id,
    reason
from breaches
order by row_id, reason
