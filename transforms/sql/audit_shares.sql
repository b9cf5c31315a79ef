-- Shown memories of a scope that are junk, or that repeat another one word for word.
-- Each session has an outcome of its own: sessions that do the same thing end alike and repeat nothing.
-- reads   memories (memory_id, memory_type, text, status, merged_into)
-- params  $junk_below_chars, $junk_below_letters (fraction of the characters other than white space)
-- writes  memory_id, flaw ('junk' or 'duplicate'); at most one row per memory and flaw
with
shown as (
    select
        memory_id,
        memory_type,
        text,
        -- Letters of every script; code has more digits, signs and brackets.
        length(regexp_replace(text, '[^\pL]', '', 'g')) as letters,
        length(regexp_replace(text, '\s', '', 'g')) as characters,
        trim(regexp_replace(lower(text), '[^\pL\pN]+', ' ', 'g')) as said
    from memories
    where status = 'active' and merged_into is null and memory_type <> 'code'
),
flawed as (
    select
        memory_id,
        'junk' as flaw
    from shown
    where length(trim(text)) < $junk_below_chars
        or letters = 0
        or letters < $junk_below_letters * characters
    union all
    select
        memory_id,
        'duplicate' as flaw
    from shown
    where memory_type <> 'outcome'
    qualify row_number() over (partition by said order by memory_id) > 1
)
select
    memory_id,
    flaw
from flawed
order by memory_id, flaw
