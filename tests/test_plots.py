"""The visual language: figures say what they should, and drawing them changes nothing global."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from howattend import plots

mpl.use("agg")


@pytest.fixture(autouse=True)
def settings_are_left_alone():
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    plt.close("all")


@pytest.fixture
def ax():
    return plots.figure()[1][0, 0]


def helix(steps, phase=0.0):
    """A path [steps, 4] that turns in the first two dimensions."""
    angle = np.linspace(0, np.pi, steps) + phase
    return np.stack([np.cos(angle), np.sin(angle), 0.1 * angle, np.zeros(steps)], 1)


def test_a_path_begins_with_a_square_and_ends_with_a_star_and_is_lighter_where_earlier(ax):
    plots.draw_path(ax, helix(6)[:, :2], plots.ENCODER, common=4)
    middle, start, end = ax.collections[1:]
    assert len(start.get_paths()[0].vertices) == len(mpl.markers.MarkerStyle("s").get_path().vertices)
    assert len(end.get_paths()[0].vertices) == len(mpl.markers.MarkerStyle("*").get_path().vertices)
    assert np.allclose(start.get_offsets()[0], helix(6)[0, :2])
    assert np.allclose(end.get_offsets()[0], helix(6)[-1, :2])
    brightness = ax.collections[0].get_colors()[:, :3].sum(1)
    assert (np.diff(brightness) < 0).all()
    assert (middle.get_facecolors()[-1] == 1).all()  # step 5 of 6 is beyond the common four: hollow
    assert not (middle.get_facecolors()[0] == 1).all()


def test_temporal_paths_are_drawn_on_joint_components_with_an_inset(ax):
    components = plots.temporal_paths(ax, helix(8), helix(7, 0.1), common=6, title="AED", inset=True)
    assert components.axes.shape == (2, 4)
    assert ax.get_title() == "AED"
    assert ax.get_xlabel() == f"PC 1 ({components.variance_ratio[0]:.0%})"
    (inset,) = ax.child_axes
    assert inset.images[0].get_array().shape == (7, 8)
    assert np.allclose(inset.images[0].get_array().sum(1), 1)
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"encoder μᴱ", "decoder μᴰ"}


def test_steps_that_never_occur_are_left_out_of_a_path(ax):
    path = helix(8)
    path[6:] = np.nan
    plots.temporal_paths(ax, path, helix(7))
    assert np.isfinite(ax.dataLim.get_points()).all()


def test_the_cloud_gives_a_word_and_its_translation_one_colour(ax):
    arms = {"A": np.array([1.0, 0, 0]), "B": np.array([-0.5, 0.9, 0]), "C": np.array([-0.5, -0.9, 0])}
    plots.input_delta_cloud(
        ax,
        {**{word: arm + np.zeros((4, 3)) for word, arm in arms.items()}, "<eos>": np.zeros((2, 3))},
        {"1": np.zeros((3, 3)), "<bos>": np.zeros((1, 3))},
        arms,
        {"1": arms["A"], "2": arms["B"], "3": arms["C"]},
        dictionary={"1": "A", "2": "B", "3": "C"},
    )
    labels = {text.get_text() for text in ax.texts}
    assert labels == {"A", "B", "C", "1", "2", "3"}
    colours = plots.word_colours(["A", "B", "C"])
    assert [line.get_color() for line in ax.lines] == list(colours.values())


def test_word_colours_are_distinct_and_never_those_of_the_parts():
    colours = plots.word_colours([*"ABCDEFGH", "<eos>"])
    assert len(set(colours.values())) == 9
    assert colours["<eos>"] == plots.SPECIAL
    assert not {plots.ENCODER, plots.DECODER, plots.READOUT, plots.ATTENTION} & set(colours.values())
    assert len(plots.word_colours([str(number) for number in range(30)])) == 30


def test_attention_has_its_words_on_the_axes(ax):
    plots.attention_matrix(ax, np.eye(3), ["run", "left", "<eos>"], ["L", "R", "<eos>"], title="one")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["run", "left", "<eos>"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["L", "R", "<eos>"]
    assert ax.yaxis_inverted()


def test_bars_add_up_to_their_shares(ax):
    table = np.array([[0.9, 0.1, -0.05], [0.02, 0.03, 0.0], [0.0, 0.0, 0.0]])
    plots.term_bars(ax, {"AED": table})
    dark, medium, light = (bar.get_height() for bar in ax.patches)
    assert (dark, medium, light) == pytest.approx((0.9, 0.05, 0.05))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["μᴰ·μᴱ", "μᴰ·χᴱ + μᴰ·Δhᴱ", "other six terms"]


def test_a_negative_part_hangs_below_the_axis(ax):
    table = np.zeros((3, 3))
    table[0, 0], table[1, 1] = 1.2, -0.2
    plots.term_bars(ax, {"AO": table}, legend=False)
    assert [bar.get_y() + min(bar.get_height(), 0) for bar in ax.patches] == pytest.approx([0, 1.2, -0.2])
    assert ax.get_legend() is None


def test_a_heat_map_writes_its_numbers(ax):
    plots.heat_map(ax, np.array([[0.5, -0.25]]), ["row"], ["x", "y"], title="t")
    assert [text.get_text() for text in ax.texts] == ["0.50", "-0.25"]


def test_shades_run_from_a_tint_to_the_colour():
    shades = plots.shades(plots.DECODER, 5)
    assert np.allclose(shades[-1], mpl.colors.to_rgb(plots.DECODER))
    assert (np.diff(shades.sum(1)) < 0).all()


@pytest.mark.parametrize("colour", [plots.ENCODER, plots.DECODER, plots.READOUT, plots.ATTENTION])
def test_the_parts_colours_are_legible_on_a_figures_ground(colour):
    """Contrast of at least 3 to 1 against white, as WCAG asks of graphical objects."""
    channels = np.asarray(mpl.colors.to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) >= 3


def test_a_curve_has_its_interval_as_a_band(ax):
    plots.curve(ax, [1, 2, 3], [5, 4, 2], plots.ENCODER, interval=([4, 3, 1], [6, 5, 4]), label="AED")
    assert np.allclose(ax.lines[0].get_xydata(), [[1, 5], [2, 4], [3, 2]])
    edge = ax.collections[0].get_paths()[0].vertices
    assert {(1.0, 4.0), (1.0, 6.0), (3.0, 1.0), (3.0, 4.0)} <= set(map(tuple, edge))


def test_grouped_bars_stand_side_by_side_and_hollow_ones_are_white(ax):
    series, colours = {"AED": [0.9, 0.8], "AO": [0.7, 0.6]}, {"AED": plots.WORDS[0], "AO": plots.WORDS[1]}
    plots.grouped_bars(ax, series, ["the", "of"], colours=colours, hollow=["AO"])
    assert np.allclose([bar.get_height() for bar in ax.patches], [0.9, 0.8, 0.7, 0.6])
    centres = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    assert np.allclose(centres, [-0.2, 0.8, 0.2, 1.2])
    assert [bar.get_facecolor()[:3] == (1, 1, 1) for bar in ax.patches] == [False, False, True, True]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["the", "of"]


def test_offset_curves_peak_at_zero_height_where_the_scores_do(ax):
    steps, places = np.arange(10), np.arange(12)
    scores = 3.0 - (places[None] - steps[:, None] - 1) ** 2  # peak one step late everywhere
    plots.offset_curves(ax, scores, [3, 6], np.full(10, 0.5), reach=5, title="AO")
    curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
    for line in curves:
        assert line.get_xdata()[np.argmax(line.get_ydata())] == 1
        assert line.get_ydata().max() == 0
        assert abs(line.get_xdata()).max() <= 5
    marks = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "v"]
    assert np.allclose(marks, 1)
    dotted = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    assert np.allclose(dotted, 0.5)
