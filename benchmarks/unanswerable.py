"""
What recall makes of questions that nothing answers: `python -m benchmarks.unanswerable [--no-model]`.

Asked are the labelled developer questions (of 39, how many have their evidence among the first five results,
within their project and over all), random words, questions of other fields, of projects there are none, and
each labelled question in a project that is not its own. Printed with the gate of
`cortex.transforms.search.answers` and without it. Some of the last kind are answered elsewhere too: "Can I
push directly to main?".
The labels are read from ../shared/data; `--set NAME=VALUE` tries another number of calibration.csv or
ranking.csv.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.retrieval import Question, any_line, fill, labels
from cortex.flows.embedders import Embedder, embedder_for
from cortex.flows.recalling.recall_search import search_store
from cortex.storage.settings.reference import read_policy
from cortex.storage.tables.lance_tables import LanceTables
from cortex.transforms.policy import Policy

RANDOM_WORDS = """
asdf qwer zxcv
purple zebra submarine
flurble wompus gribnak
banana telescope violin marmalade
hjkl hjkl hjkl
qwertyuiop
xylophone parachute octopus
glorp
the quick brown fox jumps over the lazy dog
mauve walrus trombone
zzzz zzzz
pineapple orbit sandal
kumquat hovercraft eels
snorlax pikachu battle
lkjsdf oiuwer mnbv
colorless green ideas sleep furiously
velvet thunder spoon
blorf
"""
OTHER_FIELDS = """
how do I bake sourdough bread
who won the 1998 football world cup
what is the capital of Mongolia
best way to prune roses in winter
how long should I boil an egg
when was the battle of Waterloo
how do vaccines work
which planet has the most moons
recipe for chicken tikka masala
how to remove red wine stains from a carpet
what are the symptoms of diabetes
how do I change a bicycle tyre
who painted the Mona Lisa
cheap flights from Lisbon to Berlin
how tall is Mount Kilimanjaro
what should I feed a hedgehog
how do I apply for a passport
meaning of the word serendipity
which yoga poses help with back pain
how do I tune a guitar
what is the boiling point of ethanol
how old is the universe
how do I negotiate a salary raise
when do cherry trees blossom in Kyoto
how to knit a scarf
wie backe ich einen Apfelkuchen
오늘 저녁 메뉴 추천해줘
quelle est la recette de la ratatouille
how do I train a puppy not to bite
what is the offside rule
"""
OTHER_PROJECTS = """
how do we deploy the Kubernetes cluster on Azure
which GPU does the training of the vision model need
why was Kafka replaced with RabbitMQ
what is the schema of the orders table in Snowflake
how does the iOS app cache images
why does the Terraform state live in S3
which Stripe webhook retries the payment
how is the Redis cluster sharded
where is the Elasticsearch index template defined
what does the Airflow DAG for invoices do
why did we move from Angular to Svelte
how do we rotate the Vault tokens of the payment service
which Unity version does the game use
how does the Bluetooth pairing work on Android
who approved the SOC2 audit
"""


def changed(policy: Policy, numbers: dict[str, float]) -> Policy:
    """Return `policy` with other numbers of the gate: of every model's row, or of ranking.csv."""
    calibration = {
        key: {**row, **{name: value for name, value in numbers.items() if name in row}}
        for key, row in policy.rows["calibration"].items()
    }
    ranking = {
        key: {**row, "value": numbers.get(str(key[0]), row["value"])}
        for key, row in policy.rows["ranking"].items()
    }
    return replace(policy, rows={**policy.rows, "calibration": calibration, "ranking": ranking})


def kinds_of(asked: Sequence[Question], projects: Sequence[str]) -> Iterator[tuple[str, list[Question]]]:
    """Yield (kind, questions) of what should find nothing, and of the labelled questions asked elsewhere."""
    for kind, text in (
        ("random words", RANDOM_WORDS), ("other fields", OTHER_FIELDS), ("other projects", OTHER_PROJECTS),
    ):  # fmt: skip
        lines = text.strip().split("\n")
        yield kind, [Question(line, tuple(projects), frozenset()) for line in lines]
        own_project = [(projects[number % len(projects)],) for number in range(len(lines))]
        yield (
            f"{kind}, one project",
            [Question(line, scopes, frozenset()) for line, scopes in zip(lines, own_project, strict=True)],
        )
    elsewhere = []
    for number, question in enumerate(asked):
        others = [project for project in projects if project not in question.scopes]
        elsewhere.append(replace(question, scopes=(others[number % len(others)],)))
    yield "labelled, in another project", elsewhere


def measure(tables: LanceTables, policies: dict[str, Policy], embedder: Embedder | None) -> None:
    """Print for each policy the answers kept and the questions answered that have no answer."""
    within, everywhere = labels(everywhere=False), labels(everywhere=True)
    projects = sorted(within.turns)

    def ask(question: Question, policy: Policy) -> list[object]:
        return search_store(
            tables, question.text, scopes=question.scopes, policy=policy, embedder=embedder, limit=10
        )  # type: ignore[return-value]

    for name, policy in policies.items():
        print(name)
        for of in (within, everywhere):
            right = sum(any_line(question, ask(question, policy), 5) for question in of.questions)  # type: ignore[arg-type]
            print(f"  {of.name:38} evidence in the first five: {right:.0f} of {len(of.questions)}")
        for kind, questions in kinds_of(within.questions, projects):
            answered = sum(bool(ask(question, policy)) for question in questions)
            print(f"  {kind:38} answered: {answered} of {len(questions)}")


def main() -> None:
    """Measure with the gate as shipped, changed by `--set`, and without it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--no-model", action="store_true", help="search by words alone")
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="NAME=VALUE[,…]")
    chosen = parser.parse_args()
    embedder = None if chosen.no_model else embedder_for()
    policy = read_policy(None)
    policies = {"as shipped": policy}
    for change in chosen.changes:
        numbers = {name: float(value) for name, value in (part.split("=") for part in change.split(","))}
        policies[change] = changed(policy, numbers)
    policies["without the gate"] = changed(
        policy,
        {"answer_cosine": 0.0, "answer_share": 0.0, "answer_weight": 0.0, "answer_share_word": 0.0},
    )
    with tempfile.TemporaryDirectory() as home:
        tables = LanceTables(Path(home))
        fill(tables, labels(everywhere=False), policy, embedder, with_memories=True)
        measure(tables, policies, embedder)


if __name__ == "__main__":
    main()
