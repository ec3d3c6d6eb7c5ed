"""Figures: every one of the paper is drawn or named as missing, and the gallery shows them."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from synthetic import around, as_the_paper_says, everything, make_results

from spibb.errors import InputError
from spibb.experiments.finite import N_WEDGES, default_experiment
from spibb.experiments.results import load_results
from spibb.experiments.spec import FINITE, Column
from spibb.paper import figures as module
from spibb.paper.curves import Curves
from spibb.paper.domain import optimal_path
from spibb.paper.figures import write_figures
from spibb.paper.heatmaps import EtaMap, HyperMap, palette, written
from spibb.paper.paper_figures import paper_figures
from spibb.paper.plot import DPI, save, set_title
from spibb.paper.provenance import experiment_commands
from spibb.stats import Interval

PRINTED = {
    "gridworld": ["1a", "1b", "1c", "1d", "1e", "1f", "5a", "5b", "5c", "5d", "6a", "6b", "7a",
                  "7b", "7c", "7d", "8a", "8b", "8c", "8d", "8e", "8f"],
    "gridworld-random": ["2a", "2b", "2c", "9a", "9b", "9c", "9d", "9e", "9f"],
    "random-mdps": ["3a", "3b", "3c", "3d", "3e", "3f", "7e", "7f"]
    + [f"{n}{letter}" for n in (10, 11) for letter in "abcdefghijkl"],
}  # fmt: skip
KEPT = {"1a", "1b", "1d", "7c", "8c"}
"""Figures drawn in the tests of a whole folder: one of each kind."""


class Page(HTMLParser):
    """The images and the addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.images, self.addresses = {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "img":
            self.images[unquote(found["src"])] = found["alt"]
        self.addresses += [found[name] for name in ("src", "href") if name in found]


@pytest.fixture(scope="module")
def gridworld():
    return make_results(everything("gridworld"), as_the_paper_says("gridworld"), half=0.02)


@pytest.fixture(scope="module")
def random_mdps():
    return make_results(everything("random-mdps"), as_the_paper_says("random-mdps"), half=0.02)


@pytest.fixture(scope="module")
def written_folder(tmp_path_factory, gridworld):
    """A folder with some figures, and the paths that were returned."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        some = [f for f in paper_figures("gridworld") if f.number in KEPT]
        patch.setattr(module, "paper_figures", lambda study: some)
        return folder, write_figures(gridworld, folder)


def by_number(study, number):
    return next(f for f in paper_figures(study) if f.number == number)


def png_size(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("study", FINITE)
def test_every_printed_figure_is_there_once(study):
    figures = paper_figures(study)
    assert [f.number for f in figures if not f.number.endswith("s")] == PRINTED[study]
    stems = [figure.stem for figure in figures]
    assert len(stems) == len(set(stems))
    assert all(re.fullmatch(r"[\w.=-]+", stem) for stem in stems)


@pytest.mark.parametrize("study", FINITE)
def test_an_experiment_with_all_columns_gives_every_figure(study):
    assert not [f.stem for f in paper_figures(study) if f.plot.missing(everything(study))]


def test_the_benchmark_gives_the_figures_of_the_main_text():
    for study, number in (("gridworld", "1"), ("gridworld-random", "2"), ("random-mdps", "3")):
        experiment = default_experiment(study)
        main = [f for f in paper_figures(study) if f.number[:-1] == number]
        assert main and not [f.stem for f in main if f.plot.missing(experiment)]


def test_files_are_written_in_both_formats(written_folder):
    folder, paths = written_folder
    names = sorted(path.name for path in paths)
    assert "fig1d_benchmark_mean_maze_N=5.png" in names
    assert len([n for n in names if n.endswith(".png")]) == len(KEPT)
    assert len([n for n in names if n.endswith(".svg")]) == len(KEPT)
    assert sorted(path.name for path in (folder / "figures").iterdir()) == names
    assert paths[-1] == folder / "figures" / "index.html"


def test_pictures_have_the_size_of_their_figure(written_folder):
    folder, _ = written_folder
    found = png_size(folder / "figures" / "fig1d_benchmark_mean_maze_N=5.png")
    assert found == (round(7.0 * DPI), round(5.0 * DPI))


def test_pictures_are_not_blank(written_folder):
    from matplotlib.image import imread

    for path in written_folder[1]:
        if path.suffix == ".png":
            assert imread(path)[..., :3].std() > 0.05


def test_drawings_are_well_formed(written_folder):
    drawings = [path for path in written_folder[1] if path.suffix == ".svg"]
    for path in drawings:
        assert ET.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_the_gallery_shows_every_picture_with_a_text(written_folder):
    folder, paths = written_folder
    page = Page(paths[-1].read_text(encoding="utf-8"))
    assert set(page.images) == {path.name for path in paths if path.suffix == ".png"}
    assert all(len(text) > 40 for text in page.images.values())
    for address in page.addresses:
        assert (folder / "figures" / unquote(address)).is_file()


def test_the_gallery_refers_to_nothing_outside(written_folder):
    text = written_folder[1][-1].read_text(encoding="utf-8")
    assert "://" not in text
    assert "100,000 runs" in text
    assert "spibb experiment gridworld --runs 100000" in text


def test_absent_columns_are_listed_in_the_gallery(tmp_path):
    columns = (Column.parse("pi-b:n_wedge=5"), Column.parse("pi-leq-b:n_wedge=5"))
    experiment = replace(everything("gridworld"), columns=columns, sizes=(10, 100))
    results = make_results(experiment, as_the_paper_says("gridworld"))
    paths = write_figures(results, tmp_path)
    drawn = {path.name.split("_")[0] for path in paths if path.suffix == ".png"}
    assert drawn == {"fig1a", "fig1d", "fig1e", "fig8a", "fig8b", "fig8c"}
    text = paths[-1].read_text(encoding="utf-8")
    assert "Not in these results" in text
    assert "robust-mdp:delta=0.1" in text
    assert "pi-b at 3 or more values of n_wedge" in text


def test_a_folder_without_experiment_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no experiment"):
        load_results(tmp_path)


def test_the_same_results_give_the_same_files(tmp_path, gridworld):
    figure = by_number("gridworld", "1f")
    written_twice = []
    for _ in range(2):
        paths = save(figure.plot.draw(gridworld, "title"), tmp_path / figure.stem)
        written_twice.append([path.read_bytes() for path in paths])
    assert written_twice[0] == written_twice[1]


def test_curves_show_performance_in_a_gridworld(gridworld):
    axes = by_number("gridworld", "1d").plot.draw(gridworld, "").axes[0]
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "performance ρ"
    levels = {line.get_ydata()[0] for line in axes.lines if len(set(line.get_ydata())) == 1}
    assert {gridworld.baseline, gridworld.optimal} <= levels
    assert len(axes.collections) == 9  # one band per column: two versions of three of them


def test_curves_show_normalised_performance_in_random_mdps(random_mdps):
    figure = by_number("random-mdps", "3c").plot.draw(random_mdps, "")
    axes = figure.axes[0]
    assert axes.get_ylabel() == "normalised performance"
    assert axes.get_ylim()[0] == -1.5
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert any("at most −3.0" in name for name in names)


def test_no_two_curves_of_a_figure_look_the_same(gridworld):
    for number in ("1d", "5a", "6a", "7a"):
        axes = by_number("gridworld", number).plot.draw(gridworld, "").axes[0]
        looks = [
            (line.get_color(), line.get_marker(), line.get_linestyle())
            for line in axes.lines
            if line.get_marker() != "None"
        ]
        assert len(looks) == len(set(looks))


def test_an_algorithm_that_the_paper_lacks_joins_the_benchmark(gridworld):
    added = Column.parse("model-free")
    experiment = replace(gridworld.experiment, columns=(*gridworld.experiment.columns, added))
    assert added in by_number("gridworld", "1d").plot.drawn(experiment)
    assert added not in by_number("gridworld", "1f").plot.drawn(experiment)


def test_heat_maps_print_every_cell(gridworld):
    figure = by_number("gridworld", "1b").plot.draw(gridworld, "")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert len(texts) == 9 * 10
    assert "−.10" in texts


def test_heat_maps_show_both_versions(gridworld, random_mdps):
    for results, number in ((gridworld, "7c"), (gridworld, "5c"), (random_mdps, "3d")):
        study = results.experiment.study
        figure = by_number(study, number).plot.draw(results, "")
        assert len(figure.axes) == 3  # two panels and the colour bar


def test_a_map_of_n_wedge_leaves_out_the_columns_of_the_released_boundary(gridworld):
    (rows,) = by_number("gridworld", "1b").plot.panels(gridworld.experiment).values()
    assert [row.label for row in rows] == [str(n) for n in N_WEDGES]
    own = replace(
        gridworld.experiment, columns=tuple(Column.parse(f"pi-b:n_wedge={n}") for n in (2, 3, 4))
    )
    (rows,) = by_number("gridworld", "1b").plot.panels(own).values()
    assert [row.label for row in rows] == ["2", "3", "4"]


def test_a_single_size_column_or_eta_can_be_drawn():
    for study in FINITE:
        whole = everything(study)
        parts = [replace(whole, sizes=(50,)), replace(whole, columns=whole.columns[:1])]
        parts += [replace(whole, etas=(0.9,))] if whole.etas else []
        for part in parts:
            results = make_results(part, as_the_paper_says(study))
            figures = [f for f in paper_figures(study) if not f.plot.missing(part)]
            assert figures or part.columns != whole.columns
            for figure in figures:
                said = figure.plot.describe(results)
                assert re.search(r"\d.*\.$", said)
                assert "nan" not in said
            for figure in figures[1:2]:
                axes = module.drawn(figure, results).axes
                assert any(a.lines or a.images or a.collections for a in axes)


def test_a_joined_folder_with_fewer_sizes_draws_shorter_curves(gridworld):
    plot = by_number("gridworld", "1e").plot
    cells = tuple(c for c in gridworld.cells if c.column != "basic-rl" or c.size > 50)
    whole, fewer = (
        [len(line.get_xdata()) for line in plot.draw(results, "").axes[0].lines]
        for results in (gridworld, replace(gridworld, cells=cells))
    )
    lacking = sum(size <= 50 for size in gridworld.experiment.sizes)
    assert lacking
    assert sorted(a - b for a, b in zip(whole, fewer, strict=True))[-2:] == [0, lacking]


def test_illustrations_claim_no_runs(gridworld):
    assert "runs" not in module.drawn(by_number("gridworld", "1a"), gridworld).get_suptitle()


def test_heat_maps_order_their_rows_by_value(gridworld):
    panels = HyperMap("pi-b", "n_wedge", "mean", preferred=N_WEDGES).panels(gridworld.experiment)
    assert [row.label for row in panels[""]] == [f"{n}" for n in N_WEDGES]


def test_eta_maps_need_one_column():
    experiment = everything("random-mdps")
    assert EtaMap((("", "basic-rl"), ("", "absent")), "mean").missing(experiment) == ()
    assert EtaMap((("", "absent"),), "mean").missing(experiment) == ("absent",)


def test_an_absent_eta_is_named():
    experiment = replace(everything("random-mdps"), etas=(0.5,))
    assert Curves(("mean",), ("basic-rl",), eta=0.9).missing(experiment) == ("η = 0.9",)
    assert HyperMap("pi-b", "n_wedge", "mean", eta=0.9).missing(experiment) == ("η = 0.9",)


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (around(0.854, 0.01), ".85"), (around(-0.21, 0.01), "−.21"), (around(0.001, 0), "0"),
        (around(-12.4, 1), "−12"), (around(-2.02, 0.1), "−2.0"), (around(0.999, 0), "1.0"),
        (around(0.1, 0.2), ".10?"), (Interval(0, 0, 0), "0"),
    ],
)  # fmt: skip
def test_values_are_printed_short(interval, text):
    assert written(interval) == text


def test_below_and_above_differ_without_red_or_green():
    """Blue tells them apart, as no common colour blindness touches it; lightness is symmetric."""
    colours = palette()
    for distance in (0.25, 0.5, 1.0):
        below, above = colours(0.5 - distance / 2), colours(0.5 + distance / 2)
        assert above[2] - below[2] > 0.08
    assert sum(colours(0.5)[:3]) > 2.6


def test_long_titles_are_broken_but_not_inside_equations(gridworld):
    figure = by_number("gridworld", "1a").plot.draw(gridworld, "")
    set_title(figure, "a = 1 " * 30)
    lines = figure.get_suptitle().split("\n")
    assert len(lines) > 1
    assert all(line.startswith("a") and line.endswith("1") for line in lines)


def test_what_was_run_stands_on_a_line_of_its_own(gridworld):
    figure = by_number("gridworld", "1d").plot.draw(gridworld, "")
    set_title(figure, f"Figure 1d: {'mean ' * 12}(gridworld, data of the baseline, 10 runs)")
    first, *_, last = figure.get_suptitle().split("\n")
    assert first.startswith("Figure 1d") and last == "(gridworld, data of the baseline, 10 runs)"


@pytest.mark.parametrize(("runs", "too_few"), [(99, True), (100, False)])
def test_a_tail_of_less_than_one_run_is_said_in_the_title(gridworld, runs, too_few):
    results = replace(gridworld, runs=runs)
    for number in ("1a", "1d", "1e"):
        title = module.drawn(by_number("gridworld", number), results).get_suptitle()
        assert ("too few" in title) == (too_few and number == "1e")


def test_the_optimal_trajectory_ends_at_the_goal():
    path = optimal_path()
    assert (path[0], path[-1], len(path)) == ((0, 0), (4, 4), 9)


def test_the_command_names_what_differs_from_the_benchmark(tmp_path):
    def command(experiment):
        results = make_results(experiment, lambda *_: 0.0, runs=50)
        return experiment_commands(results, tmp_path)[0]

    start = f"spibb experiment gridworld --runs 50 --out {tmp_path}"
    assert command(default_experiment("gridworld")) == start
    assert command(default_experiment("gridworld", "search")) == f"{start} --grid search"
    small = replace(default_experiment("gridworld"), columns=(Column.parse("basic-rl"),), seed=3)
    assert command(small) == f"{start} --column basic-rl --seed 3"
