"""What Cortex does for a caller: one function an operation, given a context, that returns a value."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cortex.flows.operations import (
        apply as apply,
    )
    from cortex.flows.operations import (
        audit as audit,
    )
    from cortex.flows.operations import (
        backup as backup,
    )
    from cortex.flows.operations import (
        brief as brief,
    )
    from cortex.flows.operations import (
        browse as browse,
    )
    from cortex.flows.operations import (
        config as config,
    )
    from cortex.flows.operations import (
        copies as copies,
    )
    from cortex.flows.operations import (
        cost as cost,
    )
    from cortex.flows.operations import (
        delta as delta,
    )
    from cortex.flows.operations import (
        doctor as doctor,
    )
    from cortex.flows.operations import (
        edit as edit,
    )
    from cortex.flows.operations import (
        encrypt as encrypt,
    )
    from cortex.flows.operations import (
        evaluate as evaluate,
    )
    from cortex.flows.operations import (
        evaluate_briefs as evaluate_briefs,
    )
    from cortex.flows.operations import (
        evaluate_retrieval as evaluate_retrieval,
    )
    from cortex.flows.operations import (
        exchange as exchange,
    )
    from cortex.flows.operations import (
        expand as expand,
    )
    from cortex.flows.operations import (
        forget as forget,
    )
    from cortex.flows.operations import (
        graph as graph,
    )
    from cortex.flows.operations import (
        history as history,
    )
    from cortex.flows.operations import (
        ids as ids,
    )
    from cortex.flows.operations import (
        index_code as index_code,
    )
    from cortex.flows.operations import (
        infer as infer,
    )
    from cortex.flows.operations import (
        install as install,
    )
    from cortex.flows.operations import (
        intake as intake,
    )
    from cortex.flows.operations import (
        learn as learn,
    )
    from cortex.flows.operations import (
        listing as listing,
    )
    from cortex.flows.operations import (
        members as members,
    )
    from cortex.flows.operations import (
        merges as merges,
    )
    from cortex.flows.operations import (
        past as past,
    )
    from cortex.flows.operations import (
        plan as plan,
    )
    from cortex.flows.operations import (
        projects as projects,
    )
    from cortex.flows.operations import (
        rebuild as rebuild,
    )
    from cortex.flows.operations import (
        recall as recall,
    )
    from cortex.flows.operations import (
        reflect as reflect,
    )
    from cortex.flows.operations import (
        related as related,
    )
    from cortex.flows.operations import (
        remember as remember,
    )
    from cortex.flows.operations import (
        repetition as repetition,
    )
    from cortex.flows.operations import (
        report as report,
    )
    from cortex.flows.operations import (
        review as review,
    )
    from cortex.flows.operations import (
        schedule as schedule,
    )
    from cortex.flows.operations import (
        serve as serve,
    )
    from cortex.flows.operations import (
        setup as setup,
    )
    from cortex.flows.operations import (
        share as share,
    )
    from cortex.flows.operations import (
        sql as sql,
    )
    from cortex.flows.operations import (
        state as state,
    )
    from cortex.flows.operations import (
        stats as stats,
    )
    from cortex.flows.operations import (
        status as status,
    )
    from cortex.flows.operations import (
        targets as targets,
    )
    from cortex.flows.operations import (
        team as team,
    )
    from cortex.flows.operations import (
        team_decisions as team_decisions,
    )
    from cortex.flows.operations import (
        timeline as timeline,
    )
    from cortex.flows.operations import (
        writer_choice as writer_choice,
    )
else:
    # Each module is imported once it is used: a command's help needs none of them.
    def __getattr__(name: str) -> object:
        from importlib import import_module

        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(name) from error
