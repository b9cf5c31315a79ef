-- How much each event matters now: raised by every access, fading since the last one.
-- reads   events (event_id, event_type, salience, said_at), accesses (event_id, accessed_at), event_types
-- params  $now (UTC instant), $salience_kept_per_hour, $salience_access_factor
-- writes  event_id, salience (fraction, 0 to 1); one row per event
with
used as (
    select
        event_id,
        count(*) as access_count,
        max(accessed_at) as last_accessed_at
    from accesses
    group by event_id
)
select
    events.event_id,
    least(events.salience * pow($salience_access_factor, coalesce(used.access_count, 0)), 1)
        * case
            when event_types.is_immortal then 1
            -- An event that no one dated is taken as new: nothing says how old it is.
            else pow(
                $salience_kept_per_hour,
                greatest(
                    epoch($now::timestamptz)
                        - epoch(coalesce(greatest(used.last_accessed_at, events.said_at), $now::timestamptz)),
                    0
                ) / 3600
            )
        end as salience
from events
join event_types using (event_type)
left join used using (event_id)
order by events.event_id
