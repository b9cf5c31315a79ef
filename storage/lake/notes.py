"""The manifest's notes: of what each stage made its output, and what a later run still has to do."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from cortex.transforms.memory.loss import Loss

# Stages of whose output the notes know what it was made from. What REPLACED_BY make are tables and published
# files, which a rebuild puts in place of others; PROJECTED_BY make all that can be rebuilt from the lake.
REPLACED_BY = frozenset({"embed", "link", "decay", "render"})
PROJECTED_BY = REPLACED_BY | {"consolidate", "not_due", "publish", "shown", "shown_from"}
NOTED_BY = PROJECTED_BY | {"judge"}

# In the file a note is text under a name: of a stage or another, with a scope after the colon.
_EMPTY = "empty_"

Value = TypeVar("Value")


class Output(NamedTuple):
    """What a stage made of a scope; of all scopes where it publishes one file ("all")."""

    stage: str
    scope: str


class Makers(NamedTuple):
    """What a scope's tables follow from besides the lake: fingerprints of the policy and of extractors."""

    policy: str
    extractors: str


class PromptChoice(NamedTuple):
    """The version of a prompt that a person chose, and the newest one that there was then."""

    chosen: str
    newest: str


class Cut(NamedTuple):
    """
    What a project's passages were cut from: all turns that the lake held at a commit, the `generation`.

    `output` is the fingerprint noted of these passages, `basis` one of what they follow from besides the
    turns, `files` one of the lake's files. Transcripts that are `touched` have changed since, bar what newer
    files hold. `content` is what the table held then: of any other table this says nothing.
    """

    output: str
    basis: str
    generation: int
    files: str
    touched: tuple[str, ...] = ()
    content: str = ""


@dataclass(frozen=True)
class RefusedLoss:
    """A loss that waits for a person's decision: how many of how many `what` would go, and why."""

    what: str
    lost: int
    shown: int
    why: str
    scopes: tuple[Loss, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {**vars(self), "scopes": [dict(vars(loss)) for loss in self.scopes]}

    @classmethod
    def of_dict(cls, fields: Mapping[str, Any]) -> "RefusedLoss":
        """Return what `as_dict` gave. Raises KeyError and TypeError for anything else."""
        return cls(**{**fields, "scopes": tuple(Loss(**loss) for loss in fields["scopes"])})


@dataclass(frozen=True)
class ManifestNotes:
    """
    What earlier runs noted with the lake's files. Fingerprints are of inputs, as hex text.

    `outputs` and `empty` are by output (`empty`: of these inputs nothing came, so no file is to be expected),
    `briefs`, `extractors`, `declined`, `grown` and `prompts` by project ("all": every project without its
    own), `makers`, `cuts`, `consolidated_sessions`, `given_way` and `untold` by scope.
    """

    outputs: Mapping[Output, str] = field(default_factory=dict)
    empty: Mapping[Output, str] = field(default_factory=dict)
    briefs: Mapping[str, str] = field(default_factory=dict)  # of the tables, settings and repository shown
    makers: Mapping[str, Makers] = field(default_factory=dict)
    cuts: Mapping[str, Cut] = field(default_factory=dict)  # of what there are passages
    extractors: Mapping[str, str] = field(default_factory=dict)  # that made the project's events
    declined: Mapping[str, str] = field(default_factory=dict)  # extractors that a person does not want yet
    grown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # sessions that may take back words
    given_way: Mapping[str, int] = field(default_factory=dict)  # facts, to a model's, since the last brief
    untold: Mapping[str, int] = field(default_factory=dict)  # facts of prose alone, since the last brief
    consolidated_sessions: Mapping[str, int] = field(default_factory=dict)  # there at the last merging
    judged: Mapping[str, str] = field(default_factory=dict)  # of the verdicts of a language model, by scope
    prompts: Mapping[str, PromptChoice] = field(default_factory=dict)  # that read sessions, once chosen
    team: Mapping[str, str] = field(default_factory=dict)  # of branches and journal, by project, once read
    retained: str | None = None  # of the rules of retention that were carried out last
    to_wipe: tuple[str, ...] = ()  # scopes whose tables hold erased bytes in older versions
    encrypted_with: str | None = None  # id of the key that new lake files are encrypted with
    refused_loss: RefusedLoss | None = None

    def with_output(self, output: Output, fingerprint: str, *, is_empty: bool = False) -> "ManifestNotes":
        """Return the notes once a stage has made `output`, or nothing at all, of these inputs."""
        empty = {**self.empty, output: fingerprint} if is_empty else self.empty
        return replace(self, outputs={**self.outputs, output: fingerprint}, empty=empty)

    def due_to_wipe(self, scopes: Collection[str]) -> "ManifestNotes":
        """Return the notes with `scopes` added to those whose old bytes are to be removed."""
        return replace(self, to_wipe=tuple(sorted({*self.to_wipe, *scopes})))

    def without_outputs(self, stages: Collection[str], scopes: Collection[str]) -> "ManifestNotes":
        """Return the notes as if `stages` had made nothing of `scopes` yet."""
        outputs = {o: f for o, f in self.outputs.items() if o.stage not in stages or o.scope not in scopes}
        is_rendered = "render" in stages
        briefs = {p: f for p, f in self.briefs.items() if not is_rendered or p not in scopes}
        cuts = {s: cut for s, cut in self.cuts.items() if "embed" not in stages or s not in scopes}
        return replace(self, outputs=outputs, briefs=briefs, cuts=cuts)

    def without_projections(self, scopes: Collection[str] | None = None) -> "ManifestNotes":
        """Return the notes as if nothing had been made from the lake, of `scopes` or (default) at all."""
        named = (
            {o.scope for o in self.outputs} | {*self.briefs, *self.makers, *self.cuts}
            if scopes is None
            else scopes
        )
        left = {scope: makers for scope, makers in self.makers.items() if scope not in named}
        return replace(self.without_outputs(PROJECTED_BY, named), makers=left)

    def in_place_of(self, before: "ManifestNotes") -> "ManifestNotes":
        """Return the notes of `before` with what these say of outputs, briefs and makers over them."""
        return replace(
            before,
            outputs={**before.outputs, **self.outputs},
            empty={**before.empty, **self.empty},
            briefs={**before.briefs, **self.briefs},
            makers={**before.makers, **self.makers},
            cuts={**before.cuts, **self.cuts},
        )

    def of_scopes(self, scopes: Collection[str]) -> "ManifestNotes":
        """Return what is noted of the outputs, briefs and makers of `scopes`."""
        return ManifestNotes(
            outputs={output: f for output, f in self.outputs.items() if output.scope in scopes},
            empty={output: f for output, f in self.empty.items() if output.scope in scopes},
            briefs={scope: f for scope, f in self.briefs.items() if scope in scopes},
            makers={scope: m for scope, m in self.makers.items() if scope in scopes},
            cuts={scope: cut for scope, cut in self.cuts.items() if scope in scopes},
        )

    def as_texts(self) -> dict[str, str]:
        """Return the notes as the manifest file holds them: name → text, by name."""
        texts = {f"{o.stage}:{o.scope}": text for o, text in self.outputs.items()}
        texts |= {f"{_EMPTY}{o.stage}:{o.scope}": text for o, text in self.empty.items()}
        texts |= {f"brief:{name}": text for name, text in self.briefs.items()}
        texts |= {f"made_by:{name}": ":".join(makers) for name, makers in self.makers.items()}
        texts |= {f"cut:{name}": json.dumps(cut) for name, cut in self.cuts.items()}
        texts |= {f"extract:{name}": text for name, text in self.extractors.items()}
        texts |= {f"declined:{name}": text for name, text in self.declined.items()}
        texts |= {f"grown:{name}": json.dumps(sessions) for name, sessions in self.grown.items()}
        texts |= {
            f"consolidated_sessions:{name}": str(count) for name, count in self.consolidated_sessions.items()
        }
        texts |= {f"given_way:{name}": str(count) for name, count in self.given_way.items()}
        texts |= {f"untold:{name}": str(count) for name, count in self.untold.items()}
        texts |= {f"judged:{name}": text for name, text in self.judged.items()}
        texts |= {f"prompt:{name}": ":".join(choice) for name, choice in self.prompts.items()}
        texts |= {f"team:{name}": text for name, text in self.team.items()}
        if self.retained:
            texts["retained"] = self.retained
        if self.to_wipe:
            texts["to_wipe"] = json.dumps(self.to_wipe)
        if self.encrypted_with:
            texts["sealed_with"] = self.encrypted_with
        if self.refused_loss:
            texts["loss"] = json.dumps(self.refused_loss.as_dict(), sort_keys=True)
        return dict(sorted(texts.items()))

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> "ManifestNotes":
        """
        Return the notes that the manifest file holds; a name that this Cortex does not know is left out.

        Raises KeyError, TypeError or ValueError for a note of another form.
        """
        alone = {name: text for name, text in texts.items() if ":" not in name}
        by_name: dict[str, dict[str, str]] = {}
        for name, text in texts.items():
            head, colon, scope = name.partition(":")
            if colon:
                by_name.setdefault(head, {})[scope] = text
        loss = alone.get("loss")
        return cls(
            outputs=_outputs(by_name, ""),
            empty=_outputs(by_name, _EMPTY),
            briefs=by_name.get("brief", {}),
            makers=_each(by_name, "made_by", _makers),
            cuts=_each(by_name, "cut", _cut),
            extractors=by_name.get("extract", {}),
            declined=by_name.get("declined", {}),
            grown=_each(by_name, "grown", _names),
            consolidated_sessions=_each(by_name, "consolidated_sessions", int),
            given_way=_each(by_name, "given_way", int),
            untold=_each(by_name, "untold", int),
            judged=by_name.get("judged", {}),
            prompts=_each(by_name, "prompt", _prompt_choice),
            team=by_name.get("team", {}),
            retained=alone.get("retained") or None,
            to_wipe=_names(alone.get("to_wipe", "[]")),
            encrypted_with=alone.get("sealed_with"),
            refused_loss=RefusedLoss.of_dict(json.loads(loss)) if loss else None,
        )


def _outputs(by_name: Mapping[str, Mapping[str, str]], prefix: str) -> dict[Output, str]:
    return {
        Output(stage, scope): text
        for stage in NOTED_BY
        for scope, text in by_name.get(prefix + stage, {}).items()
    }


def _each(
    by_name: Mapping[str, Mapping[str, str]], name: str, value_of: Callable[[str], Value]
) -> dict[str, Value]:
    return {scope: value_of(text) for scope, text in by_name.get(name, {}).items()}


def _makers(text: str) -> Makers:
    policy, _, extractors = text.partition(":")
    return Makers(policy, extractors)


def _cut(text: str) -> Cut:
    output, basis, generation, files, touched, *content = json.loads(text)
    names = _checked_names(touched)
    return Cut(str(output), str(basis), int(generation), str(files), names, str(*content))


def _prompt_choice(text: str) -> PromptChoice:
    chosen, _, newest = text.partition(":")
    return PromptChoice(chosen, newest)


def _names(text: str) -> tuple[str, ...]:
    """Return a JSON list of names. Raises TypeError for anything else."""
    return _checked_names(json.loads(text))


def _checked_names(names: object) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("not a list of names")
    return tuple(names)
