-- What sessions did with the memories that they were shown.
-- reads   showings (session_id, memory_id, shown_at, briefs, prompts, recalls), names (memory_id, name; lower case),
--         turns (session_id, agent_id, kind, said_at, text, tool_input)
-- params  $complaint (RE2, case folded), $cited_chars (characters of an id)
-- writes  session_id, memory_id, shown_at, briefs, prompts, recalls, used_at (UTC instant or null),
--         used_name (or null), is_cited, is_corrected; one row per session and memory shown in it
with
spoken as (
    select
        session_id,
        said_at,
        kind,
        lower(text || ' ' || coalesce(tool_input, '')) as words,
        -- What the person said, also where it refuses a call or answers a question.
        agent_id is null and kind in ('prompt', 'command', 'shell', 'rejection', 'choice') as is_persons,
        kind = 'rejection' or (kind = 'prompt' and regexp_matches(left(text, 300), $complaint, 'i')) as is_complaint
    from turns
    where said_at is not null
        and session_id in (select session_id from showings)
        and kind in ('prompt', 'command', 'shell', 'rejection', 'choice', 'tool_call', 'text')
),
wanted as (
    select
        showings.session_id,
        showings.memory_id,
        showings.shown_at,
        names.name,
        '(^|[^a-z0-9_])' || regexp_escape(names.name) || '($|[^a-z0-9_])' as pattern
    from showings
    inner join names using (memory_id)
),
named as (
    select
        wanted.session_id,
        wanted.memory_id,
        wanted.name,
        min(spoken.said_at) filter (where spoken.is_persons) as asked_at,
        min(spoken.said_at) filter (where spoken.kind = 'tool_call' and spoken.said_at >= wanted.shown_at) as done_at,
        coalesce(bool_or(spoken.is_complaint and spoken.said_at > wanted.shown_at), false) as is_corrected
    from wanted
    inner join spoken
        on wanted.session_id = spoken.session_id
        and contains(spoken.words, wanted.name)
        and regexp_matches(spoken.words, wanted.pattern)
    where spoken.kind <> 'text'
    group by wanted.session_id, wanted.memory_id, wanted.name
),
used as (
    select
        session_id,
        memory_id,
        min(done_at) filter (where asked_at is null or asked_at > done_at) as used_at,
        arg_min(name, (done_at, name)) filter (
            where done_at is not null and (asked_at is null or asked_at > done_at)
        ) as used_name,
        bool_or(is_corrected) as is_corrected
    from named
    group by session_id, memory_id
),
cited as (
    select distinct
        showings.session_id,
        showings.memory_id
    from showings
    inner join spoken
        on showings.session_id = spoken.session_id
        and spoken.kind = 'text'
        and spoken.said_at >= showings.shown_at
        and contains(spoken.words, left(showings.memory_id, $cited_chars))
)
select
    showings.session_id,
    showings.memory_id,
    showings.shown_at,
    showings.briefs,
    showings.prompts,
    showings.recalls,
    used.used_at,
    used.used_name,
    cited.memory_id is not null as is_cited,
    coalesce(used.is_corrected, false) as is_corrected
from showings
left join used
    on showings.session_id = used.session_id and showings.memory_id = used.memory_id
left join cited
    on showings.session_id = cited.session_id and showings.memory_id = cited.memory_id
order by
    showings.session_id,
    showings.memory_id
