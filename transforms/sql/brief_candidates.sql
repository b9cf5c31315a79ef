-- What the brief of each project chooses from, section by section, in the order in which it is taken (spec 8.4, 11.2).
-- reads   memories (aged and ranked, of the projects and of scope 'global'), sessions (project_id, session_id, began_at),
--         projects (project_id, is_read_by_model), telling_order (project_id, memory_id, place),
--         memory_types, event_types, thresholds
-- writes  project_id (whose brief), section (a memory type), kind (plans, or the memory type), position (from 1 in its
--         kind), is_candidate (among those that the brief chooses from), memory_id, rank (with what is added for a
--         person's words), place (in the order of a language model, or null), is_on_purpose, sessions_since (count),
--         tier ('full', 'short' or 'archive'; null if sessions do not pass it by), reason (why it stands there);
--         one row per brief and memory that it may show
with
policy as (
    select
        max(value) filter (where name = 'brief_min_confidence') as brief_min_confidence,
        max(value) filter (where name = 'archive_below_confidence') as archive_below_confidence,
        max(value) filter (where name = 'brief_explicit_bonus') as brief_explicit_bonus,
        max(value) filter (where name = 'brief_choice_bonus') as brief_choice_bonus,
        max(value) filter (where name = 'immortal_full_sessions') as immortal_full_sessions,
        max(value) filter (where name = 'immortal_short_sessions') as immortal_short_sessions,
        max(value) filter (where name = 'immortal_full_max') as immortal_full_max,
        max(value) filter (where name = 'immortal_short_max') as immortal_short_max
    from thresholds
),
layers as (
    select
        memory_id,
        unnest(evidence).layer as layer
    from memories
    where memory_type in (select memory_type from memory_types where is_binding)
),
-- By a person, or reviewed by a team: it binds more than what an assistant settled.
bound as (
    select distinct memory_id
    from layers
    where suffix(layer, ':user') or suffix(layer, ':choice') or prefix(layer, 'team:')
),
meant as (
    select
        memory_id,
        project_id,
        memory_type,
        trust,
        confidence,
        initial_confidence,
        is_pinned,
        rank,
        updated_at,
        last_accessed_at,
        -- A plan that still has a step to do.
        memory_type = 'progress' and regexp_matches(text, '(?s)^Plan:\s.*\s(Now|Next):\s') as is_plan,
        -- What a person remembered, edited or pinned; what was indexed from code stays that when they edit it.
        source_type = 'explicit' or (source_type = 'code_index' and trust = 'user') or is_pinned as is_on_purpose
    from memories
    where status = 'active' and trust in ('assistant', 'colleague', 'user')
),
-- How sure a fact was when it was said decides whether it is told at all; age only until it fades, and where the work
-- stands does not fade while nobody works on it. What a person pinned is wanted however sure it is.
believed as (
    select
        meant.* replace (
            rank + (
                case when is_on_purpose then brief_explicit_bonus else 0 end
                + case when bound.memory_id is not null then brief_choice_bonus else 0 end
            ) as rank
        )
    from meant
    join policy on true
    left join bound using (memory_id)
    where
        is_pinned
        or (
            initial_confidence >= brief_min_confidence
            and (confidence >= archive_below_confidence or is_plan or memory_type = 'outcome')
        )
),
-- A memory of scope 'global' has lived through every project's sessions.
scoped_sessions as (
    select
        project_id,
        began_at
    from sessions
    where began_at is not null
    union all
    select
        'global' as project_id,
        began_at
    from sessions
    where began_at is not null
),
numbered as (
    select
        project_id,
        began_at,
        row_number() over (partition by project_id order by began_at) as number
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
        began_at,
        max(number) as number
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
    from believed
    where memory_type in (select memory_type from memory_types where is_passed_by)
),
passed_by as (
    select
        touched.*,
        coalesce(totals.session_count, 0) - coalesce(begun.number, 0) as sessions_since
    from touched
    left join totals using (project_id)
    asof left join begun
        on touched.project_id = begun.project_id and touched.touched_at >= begun.began_at
),
by_age as (
    select
        passed_by.*,
        immortal_full_max,
        immortal_short_max,
        case
            when not is_immortal then null
            when is_pinned or sessions_since < immortal_full_sessions then 'full'
            when sessions_since < immortal_short_sessions then 'short'
            else 'archive'
        end as age_tier
    from passed_by
    join policy on true
),
with_full_cap as (
    select
        *,
        case
            when age_tier is null or age_tier <> 'full' then age_tier
            when row_number() over (
                partition by project_id, age_tier order by is_pinned desc, touched_at desc, rank desc, memory_id
            ) <= immortal_full_max then 'full'
            else 'short'
        end as full_tier
    from by_age
),
tiers as (
    select
        memory_id,
        sessions_since,
        case
            when full_tier is null or full_tier <> 'short' then full_tier
            when row_number() over (
                partition by project_id, full_tier order by is_pinned desc, touched_at desc, rank desc, memory_id
            ) <= immortal_short_max then 'short'
            else 'archive'
        end as tier
    from with_full_cap
),
told as (
    select
        projects.project_id,
        believed.* exclude (project_id),
        telling_order.place,
        coalesce(tiers.sessions_since, 0)::integer as sessions_since,
        tiers.tier,
        case
            when memory_type = 'progress' and (is_plan or place is not null) then 'plans' else memory_type
        end as kind,
        -- By rank only where a language model has read the sessions; what says what was done, by its day alone.
        case
            when projects.is_read_by_model and memory_type not in ('progress', 'outcome', 'decision')
                then believed.rank
        end as weight
    from projects
    join believed on believed.project_id = projects.project_id or believed.project_id = 'global'
    left join telling_order
        on telling_order.project_id = projects.project_id and telling_order.memory_id = believed.memory_id
    left join tiers on tiers.memory_id = believed.memory_id
),
-- What a language model put in order first; then the newest last where many sessions passed it by.
placed as (
    select
        *,
        row_number() over in_order as position,
        row_number() over in_order - count(place) over (partition by project_id, kind) as without_place
    from told
    window in_order as (
        partition by project_id, kind
        order by
            place nulls last,
            coalesce(place is null and tier = 'archive', false),
            place is null and is_pinned desc,
            place is null and is_on_purpose desc,
            case when place is null then weight end desc nulls last,
            case when place is null then updated_at end desc nulls last,
            memory_id
    )
)
select
    placed.project_id,
    sections.memory_type as section,
    placed.kind,
    placed.position,
    -- Twice as many as the section may show, since repetitions fall away later.
    placed.without_place <= 2 * types.brief_lines as is_candidate,
    placed.memory_id,
    placed.rank,
    placed.place,
    placed.is_on_purpose,
    placed.sessions_since,
    placed.tier,
    case
        when placed.is_pinned then 'pinned'
        when placed.is_on_purpose then 'said on purpose'
        when placed.place >= 0 then 'told next, by the language model'
        when placed.place < 0 then 'newer than what was put in order'
        when placed.tier = 'archive' then 'untouched for ' || placed.sessions_since || ' sessions'
        when placed.weight is not null then 'rank ' || printf('%.2f', placed.rank)
        else 'newest first'
    end as reason
from placed
join memory_types as types on types.memory_type = placed.memory_type
left join memory_types as sections
    on sections.memory_type = case when placed.kind = 'plans' then 'outcome' else placed.kind end
    and sections.brief_place is not null
order by placed.project_id, sections.brief_place nulls last, placed.kind, placed.position, placed.memory_id
