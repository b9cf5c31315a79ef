-- What in these events breaks a promise.
-- reads   events, known_turns (turn_id), allowed (name, value)
-- writes  row_id, reason; one row per breach
with
breaches as (
    select
        event_id as row_id,
        'its key is there twice' as reason
    from events
    group by event_id
    having count(*) > 1
    union all
    select event_id, 'unknown event type'
    from events
    where event_type not in (select value from allowed where name = 'event_type')
    union all
    select event_id, 'unknown memory type'
    from events
    where memory_type not in (select value from allowed where name = 'memory_type')
    union all
    select event_id, 'unknown category'
    from events
    where category not in (select value from allowed where name = 'category')
    union all
    select event_id, 'unknown trust'
    from events
    where trust not in (select value from allowed where name = 'trust')
    union all
    -- Not a number sorts above all numbers, so `between` catches it too.
    select event_id, 'confidence outside 0 to 1'
    from events
    where not confidence between 0 and 1
    union all
    select event_id, 'salience outside 0 to 1'
    from events
    where not salience between 0 and 1
    union all
    select event_id, 'no text'
    from events
    where trim(text) = ''
    union all
    select event_id, 'rests on no known turn'
    from events
    anti join known_turns using (turn_id)
    union all
    select event_id, 'text of a private section'
    from events
    where contains(lower(text), '<private>')
        or contains(lower(reason), '<private>')
        or contains(lower(rejected), '<private>')
)
select
    row_id,
    reason
from breaches
order by row_id, reason
