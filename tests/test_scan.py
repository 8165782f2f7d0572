"""The grammar of SCAN: how many commands there are, and what each word means, in cases written by hand."""

import re
import sys

import pandas as pd
import pytest

from howattend.tasks import scan


@pytest.fixture(scope="module")
def pairs():
    return scan.generate()


class TestGrammar:
    def test_it_has_as_many_commands_as_scan(self, pairs):
        assert len(pairs) == 20_910
        assert len({command for command, _ in pairs}) == 20_910

    def test_the_count_follows_from_the_rules(self, pairs):
        """34 motions (4 verbs alone; 5 verbs × 3 manners × 2 directions), × 3 repeats, then one or two phrases."""
        motions = 4 + 5 * 3 * 2
        phrases = 3 * motions
        assert len(pairs) == phrases + 2 * phrases**2
        assert sum(1 for command, _ in pairs if not {"and", "after"} & set(command.split())) == phrases

    def test_only_scans_words_and_the_papers_actions_occur(self, pairs):
        assert {word for command, _ in pairs for word in command.split()} == set(scan.WORDS)
        actions = {word for _, actions in pairs for word in actions.split()}
        assert actions == set(scan.ACTIONS) == {"WALK", "RUN", "JUMP", "LOOK", "LTURN", "RTURN"}

    def test_lengths_are_those_that_the_paper_of_scan_states(self, pairs):
        assert max(len(command.split()) for command, _ in pairs) == 9
        assert min(len(actions.split()) for _, actions in pairs) == 1
        assert max(len(actions.split()) for _, actions in pairs) == 48  # two times "around", three times

    def test_pairs_are_strings_and_interpret_says_the_same(self, pairs):
        for command, actions in pairs[::97]:
            assert isinstance(command, str) and isinstance(actions, str)
            assert scan.interpret(command) == actions


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("walk", "WALK"),
        ("look", "LOOK"),
        ("run right", "RTURN RUN"),
        ("turn left", "LTURN"),
        ("turn right thrice", "RTURN RTURN RTURN"),
        ("jump twice", "JUMP JUMP"),
        ("walk left twice", "LTURN WALK LTURN WALK"),
        ("run opposite left", "LTURN LTURN RUN"),
        ("turn opposite right", "RTURN RTURN"),
        ("look around right", "RTURN LOOK RTURN LOOK RTURN LOOK RTURN LOOK"),
        ("turn around left", "LTURN LTURN LTURN LTURN"),
        ("jump opposite right thrice", "RTURN RTURN JUMP RTURN RTURN JUMP RTURN RTURN JUMP"),
        ("run and jump left", "RUN LTURN JUMP"),
        ("run after jump left", "LTURN JUMP RUN"),
        ("walk twice after turn opposite left", "LTURN LTURN WALK WALK"),
        ("look right and turn around right twice", "RTURN LOOK " + " ".join(["RTURN"] * 8)),
    ],
)
def test_what_a_command_means(pairs, command, actions):
    assert scan.interpret(command) == actions
    assert scan.interpret(command.split()) == actions
    assert scan.interpret("  " + command.replace(" ", "   ")) == actions
    assert (command, actions) in pairs


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "a phrase is empty"),
        ("hop", "unknown word 'hop' in the command 'hop'; SCAN's words are walk, run, jump, look, turn, left"),
        ("Walk left", "unknown word 'Walk'"),
        ("turn", "'turn' must be followed by left or right"),
        ("turn twice", "'turn' must be followed by left or right"),
        ("run opposite", "'opposite' must be followed by left or right"),
        ("jump around twice", "'around' must be followed by left or right"),
        ("left walk", "a phrase begins with 'left' instead of a verb"),
        ("twice", "a phrase begins with 'twice' instead of a verb"),
        ("walk run", "'run' cannot follow 'walk'"),
        ("walk left right", "'right' cannot follow 'left'"),
        ("walk twice left", "'left' cannot follow 'twice'"),
        ("walk left opposite", "'opposite' cannot follow 'left'"),
        ("walk twice thrice", "'thrice' cannot follow 'twice'"),
        ("walk and", "a phrase is empty"),
        ("after walk", "a phrase is empty"),
        ("walk and run and jump", "it has 2 conjunctions, SCAN allows one"),
    ],
)
def test_what_is_outside_the_grammar_is_explained(command, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        scan.interpret(command)
    assert "SCAN's words are walk, run" in str(caught.value)
    if "unknown word" not in message:
        assert "The rule: a command is one phrase" in str(caught.value)


class TestCopyOnTheHub:
    @pytest.fixture(autouse=True)
    def offline(self, monkeypatch, tmp_path):
        """No test looks for the network; what is read lands in a folder of the test's own."""
        import datasets

        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        datasets.disable_progress_bars()

    @pytest.fixture
    def copy(self, tmp_path):
        """copy(pairs, suffix): a folder in the hub's layout and names, two splits."""

        def write(pairs, suffix="parquet", columns=("commands", "actions")):
            names = {ours: theirs for theirs, ours in scan.HUB_ACTIONS.items()}
            rows = [(command, " ".join(names.get(a, a) for a in actions.split())) for command, actions in pairs]
            folder = tmp_path / "copy" / "simple"
            folder.mkdir(parents=True)
            for split, part in (("train", rows[: len(rows) // 2]), ("test", rows[len(rows) // 2 :])):
                table = pd.DataFrame(part, columns=list(columns))
                path = folder / f"{split}-00000-of-00001.{suffix}"
                table.to_parquet(path) if suffix == "parquet" else table.to_csv(path, index=False)
            return folder.parent

        return write

    @pytest.mark.parametrize("suffix", ["parquet", "csv"])
    def test_a_copy_is_read_in_our_names(self, copy, suffix):
        pairs = [("jump left", "LTURN JUMP"), ("look", "LOOK"), ("turn opposite right", "RTURN RTURN")]
        folder = copy(pairs, suffix)
        assert "I_TURN_RIGHT I_TURN_RIGHT" in (folder / "simple" / f"test-00000-of-00001.{suffix}").read_text(
            encoding="latin-1"
        )
        assert sorted(scan.load(folder)) == sorted(pairs)

    def test_a_whole_copy_agrees_with_the_grammar(self, copy, pairs):
        found = scan.compare(scan.load(copy(pairs)))
        assert found.agrees
        assert found == scan.Comparison((), (), ())

    def test_other_columns_can_be_named(self, copy):
        folder = copy([("run", "RUN"), ("walk", "WALK")], columns=("in", "out"))
        assert sorted(scan.load(folder, columns=("in", "out"))) == [("run", "RUN"), ("walk", "WALK")]
        with pytest.raises(ValueError, match="which has in, out, got commands, actions"):
            scan.load(folder)

    def test_an_action_without_a_name_is_refused(self, copy):
        with pytest.raises(ValueError, match="no entry for 'HOP'; the actions here are WALK"):
            scan.load(copy([("run", "RUN"), ("hop", "HOP")]))

    @pytest.mark.parametrize("empty", [None, "", "  "])
    @pytest.mark.parametrize("column", [0, 1])
    def test_an_empty_cell_is_named(self, tmp_path, empty, column):
        (tmp_path / "simple").mkdir()
        row = ["jump", "I_JUMP"]
        row[column] = empty
        table = pd.DataFrame([["run", "I_RUN"], row], columns=["commands", "actions"])
        table.to_parquet(tmp_path / "simple" / "train-00000-of-00001.parquet")
        with pytest.raises(
            ValueError,
            match=f"row 1 of its split 'train' has {empty!r} in the column '{('commands', 'actions')[column]}'",
        ):
            scan.load(tmp_path)

    def test_without_network_the_message_says_what_to_do(self):
        with pytest.raises(ConnectionError, match=r"scan-tasks/scan-tasks.*local folder.*scan\.generate\(\)"):
            scan.load()

    def test_a_folder_without_data_says_so(self, tmp_path):
        (tmp_path / "simple").mkdir()
        with pytest.raises(ConnectionError, match="could not be read from"):
            scan.load(tmp_path)

    def test_without_the_package_the_message_says_what_to_do(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "datasets", None)
        with pytest.raises(ModuleNotFoundError, match="pip install datasets"):
            scan.load()


def test_a_comparison_names_every_difference(pairs):
    copy = [pair for pair in pairs if pair[0] != "walk"]
    copy[copy.index(("run", "RUN"))] = ("run", "JUMP")
    found = scan.compare([*copy, ("hop", "HOP"), ("hop", "HOP")])
    assert not found.agrees
    assert found == scan.Comparison(("walk",), ("hop",), (("run", "JUMP", "RUN"),))
