"""The command line: ``python -m howattend COMMAND``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from howattend import runs
from howattend.tasks import corpora


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except KeyboardInterrupt:
        goes_on = options.command in (_train, _sweep)  # which have checkpoints
        print(f"stopped; the same command {'goes on from here' if goes_on else 'starts anew'}", file=sys.stderr)
        return 130
    except (ValueError, OSError, RuntimeError, ArithmeticError, ModuleNotFoundError) as error:
        print(f"howattend: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m howattend", description="How Encoder–Decoders Attend")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(command=run)
        return added

    root = argparse.ArgumentParser(add_help=False)
    root.add_argument("--root", type=Path, default=Path.cwd(), help="the repository (default: this folder)")
    for name, run, text in (
        ("book", _book, "execute every chapter and build the HTML book in _build/html; touches no tracked file"),
        ("chapters", _chapters, "execute, normalise and write back the chapters that are committed in book/"),
    ):
        added = commands.add_parser(name, help=text, description=text, parents=[root])
        added.add_argument("names", nargs="*", metavar="CHAPTER", help="these chapters only (default: all)")
        added.add_argument("--workers", type=int, help="chapters executed at once (default: one a core)")
        added.add_argument(
            "-p",
            nargs=2,
            action="append",
            default=[],
            metavar=("NAME", "VALUE"),
            dest="parameters",
            help="a chapter parameter: retrain, quick, seed or device",
        )
        added.set_defaults(command=run)
    added.add_argument("--times", action="store_true", help="one after another, and record how long each takes")
    train = command("train", _train, "train runs and store their weights in data/weights; goes on where it was stopped")
    train.add_argument("names", nargs="*", metavar="RUN", help="see: list")
    train.add_argument("--all", action="store_true", help="every run that has no weights of its present configuration")
    train.add_argument("--seed", type=int, help="this seed only (default: the lowest of 0 … 4 that trains)")
    train.add_argument("--device", default="cpu")
    command("list", _list, "the runs, with what is shipped of them")
    verify = command("verify", _verify, "reload shipped runs and repeat their recorded accuracy")
    verify.add_argument("names", nargs="*", metavar="RUN", help="default: all that are shipped")
    verify.add_argument("--device", default="cpu")
    corpus = command(
        "corpus", corpora.command.main, "build the corpus of the translation task, once, in the cache folder"
    )
    corpora.command.add_arguments(corpus)
    results = command("claims", _claims, "measure every claim on the shipped runs and record it in data/results")
    results.add_argument("--check", action="store_true", help="compare with what is recorded, and write nothing")
    results.add_argument("--device", default="cpu")
    measure = command(
        "measure",
        _measure,
        "measure translation runs on the corpus's test split, and store what claims and figures need",
    )
    measure.add_argument("names", nargs="*", metavar="RUN", help="default: all that are shipped and have attention")
    measure.add_argument("--device", default="cpu")
    accuracies = command("accuracies", _accuracies, "train the runs of which only the accuracy is kept, and record it")
    accuracies.add_argument("names", nargs="*", metavar="RUN", help="of these runs only; without any: all")
    accuracies.add_argument("--device", default="cpu")
    sweep = command("sweep", _sweep, "train every configuration at several seeds and measure every claim on each")
    sweep.add_argument("--only", nargs="+", metavar="PATTERN", help="runs of these names, such as 'escan-ao-*'")
    sweep.add_argument("--workers", type=int, help="processes of one thread each (default: one a core)")
    sweep.add_argument("--minutes", type=float, help="stop after so long; the same command goes on (default: the end)")
    sweep.add_argument("--list", action="store_true", help="show what there is to do, and do nothing")
    sweep.add_argument("--again", action="store_true", help="measure finished networks anew, and train nothing")
    bleu = command(
        "bleu", _bleu, "translate the test split, greedily and with a beam, and record BLEU and word accuracy"
    )
    bleu.add_argument("names", nargs="*", metavar="RUN", help="default: every translation run that is shipped")
    bleu.add_argument("--device", default="cpu")
    test = commands.add_parser("test", parents=[root], help="lint, every test, and a new run of every chapter")
    test.add_argument("arguments", nargs="*", metavar="PYTEST-ARGUMENT", help="instead of the folders tests and book")
    test.set_defaults(command=_test)
    bench = commands.add_parser("bench", parents=[root], help="speed, as ratios to what the machine can do")
    bench.set_defaults(command=_bench)
    return parser


def _book(options: argparse.Namespace) -> int:
    from howattend import book  # only this command needs papermill and Sphinx

    return book.main_build(options)


def _chapters(options: argparse.Namespace) -> int:
    from howattend import book

    return book.main_refresh(options)


def _train(options: argparse.Namespace) -> int:
    if bool(options.names) == options.all:
        raise ValueError("name the runs to train, or give --all; python -m howattend list shows them")
    for name in options.names:
        runs.shipped_config(name)  # a wrong name stops before hours of training, not after
    recorded = runs.manifest()
    names = options.names or [
        name for name, config in runs.REGISTRY.items() if recorded.get(name, {}).get("config_hash") != config.hash
    ]
    seeds = range(runs.MAX_SEEDS) if options.seed is None else [options.seed]
    for name in names:
        entry = runs.train_and_ship(name, seeds, options.device)
        print(f"{name}: word accuracy {entry['accuracy']:.3%} after {entry['seconds']:.0f} s (seed {entry['seed']})")
    return 0


def _list(options: argparse.Namespace) -> int:
    recorded = runs.manifest()
    for name, config in runs.REGISTRY.items():
        entry = recorded.get(name)
        state = "not shipped"
        if entry is not None:
            state = f"word accuracy {entry['accuracy']:.3%}, seed {entry['seed']}, {entry['seconds']:.0f} s"
            if entry["config_hash"] != config.hash:
                state = "shipped weights are of another configuration"
        print(f"{name:36s} {state}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    failed = 0
    names = options.names or list(runs.manifest())
    if not names:
        raise ValueError("no run is shipped, so there is nothing to verify; train one: python -m howattend train RUN")
    for name in names:
        try:
            result = runs.verify(name, options.device)
        except (ValueError, OSError) as error:  # one damaged file must not hide the others' results
            print(f"howattend: {error}", file=sys.stderr)
            failed += 1
            continue
        failed += not result.passed
        word = "ok" if result.passed else "FAILED"
        print(f"{word:6s} {name:36s} {result}")
    return 1 if failed else 0


def _claims(options: argparse.Namespace) -> int:
    from howattend import claims

    measured = claims.measure_shipped(options.device)
    if options.check:
        differing = claims.compare(measured)
        print(differing.to_string(index=False) if len(differing) else "all measured values agree with the records")
        return int(len(differing) > 0)
    print(f"{claims.write_results(measured)}: {len(claims.tidy(measured))} values of {len(measured)} measurements")
    return 0


def _sweep(options: argparse.Namespace) -> int:
    from howattend import sweep

    plan = sweep.matching(sweep.full_plan(), options.only)
    if options.list:
        print(sweep.overview(plan).to_string(index=False))
        return 0
    sweep.run(plan, options.workers, options.minutes, again=options.again)
    return 0


def _measure(options: argparse.Namespace) -> int:
    from howattend import measured

    names = options.names or [name for name in runs.manifest() if measured.is_measured(runs.config(name))]
    if not names:
        raise ValueError("no translation run is shipped; train one: python -m howattend train translation-aed-gru")
    for name in names:
        measured.require_measured(runs.config(name))  # before the first is measured, which takes a minute
    for name in names:
        found = measured.measure(runs.load_run(name, options.device))
        path = measured.path(name)
        measured.save(found, path)
        print(f"{path}: {found.pairs} pairs, word accuracy {found.accuracy:.2%}, {path.stat().st_size / 1e6:.1f} MB")
    print(measured.write_lexicon(runs.config(measured.LEXICON_OF).task))
    return 0


def _accuracies(options: argparse.Namespace) -> int:
    recorded = runs.record_accuracies(options.names, device=options.device)
    print(recorded.drop(columns="config_hash").to_string(index=False))
    return 0


def _bleu(options: argparse.Namespace) -> int:
    from howattend import evaluation

    rows = evaluation.record(options.names, options.device)
    shown = rows[(rows["lengths"] == evaluation.ALL) & (rows["register"] == evaluation.ALL)]
    columns = ["run", "search", "pairs", "bleu", "low", "high", "accuracy", "known_accuracy"]
    print(shown[columns].to_string(index=False, float_format="{:.4g}".format))
    return 0


def _test(options: argparse.Namespace) -> int:
    from howattend import book

    return book.main_test(options)


def _bench(options: argparse.Namespace) -> int:
    scripts = sorted((options.root / "benchmarks").glob("bench_*.py"))
    if not scripts:
        raise FileNotFoundError(f"{options.root} has no benchmarks folder; go to the repository or give --root")
    for script in scripts:
        print(f"\n{script.stem}", flush=True)
        subprocess.run([sys.executable, str(script)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
