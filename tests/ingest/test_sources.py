"""One test per kind of source: the same content gives the same counts and the same policy."""

from __future__ import annotations

import base64
import bz2
import gzip
import http.server
import json
import threading
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from logs import COLUMNS, assert_same_counts_and_policy, hospital, three_lakes, write
from parts import needed

from spibb import Counts, InputError, Log, Source, count_log, from_minari, read_log, read_policy
from spibb.sql import staging

TABLE = hospital(40)
TRUTH = Counts.from_log(Log.from_frame(TABLE, columns=COLUMNS))
LABELS = ["ward", "severity", "drug"]


def same(source, truth=TRUTH, columns=COLUMNS):
    """The counts where the log lies, and those of its rows."""
    assert_same_counts_and_policy(count_log(source, columns=columns), truth)
    assert_same_counts_and_policy(Counts.from_log(read_log(source, columns=columns)), truth)


@pytest.fixture
def csv(tmp_path):
    return write(TABLE, tmp_path / "plain.csv").read_text("utf-8")


def as_separated(table, separator=",", decimal="."):
    """A table as text, the way that spreadsheets export it."""

    def cell(value):
        if isinstance(value, float):
            return str(value).replace(".", decimal)
        text = str(value)
        return '"' + text.replace('"', '""') + '"' if set(text) & set(separator + '"') else text

    lines = [table.column_names, *(row.values() for row in table.to_pylist())]
    return "".join(separator.join(map(cell, line)) + "\n" for line in lines)


@pytest.mark.parametrize("ending", [".csv.gz", ".CSV.GZ", ".csv.bz2", ".csv.zst"])
def test_packed_csv(tmp_path, csv, ending):
    path = tmp_path / f"log{ending}"
    kind = ending.rpartition(".")[2].lower()
    with pa.output_stream(path, compression={"gz": "gzip", "zst": "zstd"}.get(kind, kind)) as file:
        file.write(csv.encode())
    same(path)


def test_tab_separated(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text(as_separated(TABLE, "\t"), "utf-8")
    same(path)


def test_a_tab_separated_file_keeps_the_commas_of_its_labels(tmp_path):
    table = pa.table(
        {"episode_id": [0, 1], "step": [0, 0], "state": ["a,b", "c"], "action": ["x", "y,z"],
         "reward": [1, 2], "terminated": [1, 1]}
    )  # fmt: skip
    (tmp_path / "log.tsv").write_text(as_separated(table, "\t"), "utf-8")
    assert read_log(tmp_path / "log.tsv").states.labels == ("a,b", "c")


def test_a_separator_wins_over_an_ending(tmp_path):
    (tmp_path / "log.tsv").write_text(as_separated(TABLE, ";"), "utf-8")
    same(Source(tmp_path / "log.tsv", separator=";"))


@pytest.mark.parametrize("place", [3, None, ["a.csv", 3], Source("a.csv")])
def test_a_place_is_a_name(place):
    with pytest.raises(InputError, match=r"place is .*, expected a str or a Path: name a file"):
        Source(place)


def test_an_address_is_given_alone():
    with pytest.raises(InputError, match=r"'http://\*\*\*@h/a.csv' is an address in a list"):
        count_log(["log.csv", "http://ann:s3cret@h/a.csv"])


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_json_array(tmp_path, indent, packed):
    path = tmp_path / ("log.json.gz" if packed else "log.json")
    content = json.dumps(TABLE.to_pylist(), indent=indent).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    same(path)


def test_json_lines_named_json(tmp_path):
    path = tmp_path / "log.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()), "utf-8")
    same(path)


@pytest.mark.parametrize("ending", [".feather", ".arrow", ".ipc"])
def test_arrow_files(tmp_path, ending):
    path = tmp_path / f"log{ending}"
    pyarrow.feather.write_feather(TABLE, path)
    same(path)


def test_arrow_stream(tmp_path):
    path = str(tmp_path / "log.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, TABLE.schema) as stream:
        stream.write_table(TABLE)
    same(path)


def test_several_arrow_files_are_one_log(tmp_path):
    half = len(TABLE) // 2
    pyarrow.feather.write_feather(TABLE.slice(0, half), tmp_path / "1.feather")
    pyarrow.feather.write_feather(TABLE.slice(half), tmp_path / "2.feather")
    same(tmp_path)
    pyarrow.feather.write_feather(TABLE.drop_columns(["drug"]), tmp_path / "3.feather")
    with pytest.raises(InputError, match=r"different columns: '3\.feather'"):
        count_log(tmp_path)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".csv.gz", ".jsonl"])
def test_zip(tmp_path, ending):
    inside = tmp_path / f"log{ending}"
    if ending == ".csv.gz":
        inside.write_bytes(gzip.compress(as_separated(TABLE).encode()))
    elif ending == ".jsonl":
        inside.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()), "utf-8")
    else:
        write(TABLE, inside)
    with zipfile.ZipFile(tmp_path / "log.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(inside, f"some/folder/log{ending}")
        archive.writestr("__MACOSX/._log.csv", b"x")
        archive.writestr("some/.DS_Store", b"x")
    inside.unlink()
    same(tmp_path / "log.zip")


def test_one_file_of_several_in_a_zip(tmp_path, csv):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("visits.csv", csv)
        archive.writestr("notes.csv", "a,b\n1,2\n")
    with pytest.raises(InputError, match=r"holds 2 files .*'visits.csv', 'notes.csv'.*name one, as "
                       r"all\.zip#visits\.csv"):  # fmt: skip
        count_log(tmp_path / "all.zip")
    same(f"{tmp_path / 'all.zip'}#visits.csv")
    same(Source(tmp_path / "all.zip", table="visits.csv"))
    with pytest.raises(InputError, match=r"holds no file 'visit\.csv' \(did you mean 'visits.csv'"):
        count_log(f"{tmp_path / 'all.zip'}#visit.csv")


def test_a_hash_in_the_name_of_a_file_that_exists_is_part_of_it(tmp_path, csv):
    (tmp_path / "log#1.csv").write_text(csv, "utf-8")
    same(tmp_path / "log#1.csv")


def renamed_wards():
    """The log with labels outside ASCII."""
    frame = TABLE.to_pydict()
    for name in ("ward", "next_ward"):
        frame[name] = [value.replace("ward", "Röntgen–é") for value in frame[name]]
    return pa.table(frame)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "UTF_16_LE", "utf-8"])
@pytest.mark.parametrize("packed", [False, True])
def test_encodings(tmp_path, encoding, packed):
    table = renamed_wards()
    if encoding == "latin-1":
        table = pa.table({k: [v.replace("–", "-") if isinstance(v, str) else v for v in c]
                          for k, c in table.to_pydict().items()})  # fmt: skip
    truth = Counts.from_log(Log.from_frame(table, columns=COLUMNS))
    content = as_separated(table).encode(encoding)
    path = tmp_path / ("log.csv.gz" if packed else "log.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    same(Source(path, encoding=encoding), truth)


def test_json_in_another_encoding(tmp_path):
    table = renamed_wards()
    text = json.dumps(table.to_pylist(), ensure_ascii=False)
    (tmp_path / "log.json").write_bytes(text.encode("cp1252"))
    truth = Counts.from_log(Log.from_frame(table, columns=COLUMNS))
    same(Source(tmp_path / "log.json", encoding="cp1252"), truth)


@pytest.mark.parametrize("separator", [";", "\t", "|", "~"])
def test_decimal_commas_and_separators(tmp_path, separator):
    path = tmp_path / "log.csv"
    path.write_text(as_separated(TABLE, separator, ","), "utf-8")
    same(Source(path, separator=separator, decimal=","))


def test_whole_numbers_with_decimal_commas_are_the_same_labels(tmp_path):
    table = TABLE.set_column(3, "severity", TABLE["severity"].cast("float64"))
    table = table.set_column(7, "next_severity", table["next_severity"].cast("float64"))
    (tmp_path / "log.csv").write_text(as_separated(table, ";", ","), "utf-8")
    same(Source(tmp_path / "log.csv", decimal=","))


def test_a_point_is_no_number_where_numbers_have_commas(tmp_path):
    text = "episode_id;step;state;action;reward;terminated\n0;0;a;x;1.234;1\n1;0;b;x;0,5;1\n"
    (tmp_path / "log.csv").write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"reward in row 0 is 1\.234, expected a number"):
        count_log(Source(tmp_path / "log.csv", decimal=","))


def test_a_policy_with_decimal_commas(tmp_path):
    text = "state;action;probability\n1,0;x;0,25\n1,0;y;0,75\n2,0;x;1\n"
    (tmp_path / "policy.csv").write_text(text, "utf-8")
    policy = read_policy(Source(tmp_path / "policy.csv", decimal=","))
    assert policy.row(1) == {"x": 0.25, "y": 0.75}
    (tmp_path / "policy.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert read_policy(Source(tmp_path / "policy.csv.gz", decimal=",")).row(2)["x"] == 1


def test_quotes_say_what_is_text_in_a_packed_policy_too(tmp_path):
    text = b'"state","action","probability"\n"1","x",1\n"2","x",1\n'
    (tmp_path / "policy.csv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "policy.csv.bz2").write_bytes(bz2.compress(text))
    for name in ("policy.csv.gz", "policy.csv.bz2"):
        assert read_policy(tmp_path / name).states.labels == ("1", "2")


@pytest.fixture
def workbook(tmp_path):
    openpyxl = needed("openpyxl")

    def write(table, name="log.xlsx", title="Visits"):
        book = openpyxl.Workbook()
        book.active.title = "Notes" if title != book.active.title else title
        book.active.append(["nothing", "here"])
        sheet = book.create_sheet(title, 0)
        sheet.append(table.column_names)
        for row in table.to_pylist():
            sheet.append(list(row.values()))
        book.save(tmp_path / name)
        return tmp_path / name

    return write


def test_excel(workbook):
    same(workbook(TABLE))
    same(f"{workbook(TABLE)}#Visits")
    with pytest.raises(InputError, match=r"no sheet 'Visit' \(did you mean 'Visits'\?\)"):
        count_log(f"{workbook(TABLE)}#Visit")


def test_excel_keeps_text_that_looks_like_numbers(workbook):
    table = pa.table(
        {"episode_id": [0, 1, 2], "step": [0, 0, 0], "state": ["007", "7", "8"],
         "action": ["x", 3, "y"] and ["x", "3", "y"], "reward": [1, 2.5, 3],
         "terminated": [True, True, True]}
    )  # fmt: skip
    assert read_log(workbook(table)).states.labels == ("007", "7", "8")


def test_a_wrong_dimension_loses_no_rows(workbook, tmp_path):
    with zipfile.ZipFile(workbook(TABLE)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    before, _, after = parts[sheet].partition(b'<dimension ref="')
    parts[sheet] = before + b'<dimension ref="A1:B2"' + after.partition(b'"')[2]
    with zipfile.ZipFile(tmp_path / "odd.xlsx", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    same(tmp_path / "odd.xlsx")
    parts[sheet] = parts[sheet].replace(b'<row r="3"', b'<row r="999999999"')
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(InputError, match="more than 1048576 rows, which no sheet can have"):
        count_log(tmp_path / "bomb.xlsx")


def test_entities_in_a_workbook_are_not_expanded(workbook, tmp_path):
    with zipfile.ZipFile(workbook(TABLE)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    inside = b'<sheetData><row><c t="inlineStr"><is><t>&z;</t></is></c></row>'
    doctype = b'<!DOCTYPE w [<!ENTITY z SYSTEM "file:///etc/passwd">]>'
    before, found, after = parts[sheet].partition(b"<worksheet")
    parts[sheet] = before + doctype + found + after.replace(b"<sheetData>", inside)
    with zipfile.ZipFile(tmp_path / "evil.xlsx", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(InputError, match=r"cannot read .*evil\.xlsx"):
        count_log(tmp_path / "evil.xlsx")


def test_a_workbook_is_unpacked_up_to_a_limit_only(workbook, monkeypatch):
    path = workbook(TABLE)
    monkeypatch.setattr("spibb.sql.converted.MOST_BYTES", 1000)
    with pytest.raises(InputError, match=r"unpacks to more than .* GiB, our limit"):
        count_log(path)


def test_formulas_count_with_their_saved_value_and_never_run(tmp_path):
    openpyxl = needed("openpyxl")
    book = openpyxl.Workbook()
    for row in (["episode_id", "step", "state", "action", "reward", "terminated"],
                [0, 0, "a", "x", "=1+1", True], [1, 0, "b", "x", 1, True]):  # fmt: skip
        book.active.append(row)
    book.save(tmp_path / "log.xlsx")
    with pytest.raises(InputError, match="column 'reward' is missing in row 0"):
        count_log(tmp_path / "log.xlsx")


def test_a_text_cell_among_numbers_is_named(tmp_path):
    openpyxl = needed("openpyxl")
    book = openpyxl.Workbook()
    for row in (["episode_id", "step", "state", "action", "reward", "terminated"],
                [0, 0, "a", "x", 1, True], [1, 0, "b", "x", "#DIV/0!", True]):  # fmt: skip
        book.active.append(row)
    book.save(tmp_path / "log.xlsx")
    with pytest.raises(InputError, match=r"reward in row 1 is '#DIV/0!', expected a number"):
        count_log(tmp_path / "log.xlsx")


def test_an_archive_is_unpacked_up_to_a_limit_only(tmp_path, csv, monkeypatch):
    with zipfile.ZipFile(tmp_path / "log.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log.csv", csv)
    (tmp_path / "log.csv.bz2").write_bytes(bz2.compress(csv.encode()))
    monkeypatch.setattr(staging, "LIMIT", len(csv) // 2)
    folder = staging.private_path("").parent
    before = set(folder.iterdir())
    for name in ("log.zip", "log.csv.bz2"):
        with pytest.raises(InputError, match=r"unpacks to more than .* GiB, our limit"):
            count_log(tmp_path / name)
    assert set(folder.iterdir()) == before


def test_an_archive_that_lies_about_its_size_is_told(tmp_path, csv):
    with zipfile.ZipFile(tmp_path / "log.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log.csv", csv)
    content = (tmp_path / "log.zip").read_bytes()
    size = len(csv.encode()).to_bytes(4, "little")
    assert content.count(size) == 2
    (tmp_path / "log.zip").write_bytes(content.replace(size, (10).to_bytes(4, "little")))
    with pytest.raises(InputError, match=r"cannot read .*log\.zip"):
        count_log(tmp_path / "log.zip")


def test_no_name_in_an_archive_is_used_as_a_path(tmp_path, csv):
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("../../escaped.csv", csv)
    same(tmp_path / "log.zip")
    assert not list(tmp_path.parent.parent.glob("escaped*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.zip", "plain.csv"]


def test_options_for_text_are_refused_for_other_files(tmp_path):
    path = write(TABLE, tmp_path / "log.parquet")
    for options in ({"encoding": "latin-1"}, {"decimal": ","}, {"separator": ";"}):
        with pytest.raises(
            InputError, match="is not text, so encoding, decimal and separator do not"
        ):
            count_log(Source(path, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": "x"}, "decimal is 'x'"),
        ({"separator": ";;"}, "separator is ';;', expected one character"),
        ({"separator": ""}, "separator is '', expected one character"),
        ({"separator": ",", "decimal": ","}, "separator and decimal are both ','"),
        ({"encoding": "klingon"}, "encoding 'klingon' is not known"),
        ({"encoding": "rot13"}, "encoding 'rot13' is not known"),
        ({"encoding": "base64"}, "encoding 'base64' is not known"),
        ({"encoding": "ascii"}, r"cannot read .*log.csv' as ascii .*byte \d+"),
        ({"table": "x"}, "is one table, not a database"),
        ({"query": "SELECT 1"}, "is one table, not a database"),
        ({"table": "x", "query": "SELECT 1"}, "table and query are both given"),
        ({"encoding": 3}, "encoding is an int, expected a str"),
    ],
)
def test_bad_options_are_told(tmp_path, options, message):
    (tmp_path / "log.csv").write_text(as_separated(renamed_wards()), "utf-8")
    with pytest.raises(InputError, match=message):
        count_log(Source(tmp_path / "log.csv", **options), columns=COLUMNS)


def test_a_text_in_another_encoding_is_told_with_the_remedy(tmp_path):
    text = as_separated(renamed_wards()).replace("–", "-")
    (tmp_path / "log.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match="name its encoding, as --encoding latin-1"):
        count_log(tmp_path / "log.csv", columns=COLUMNS)


FORMS = ("arrow", "feather", "xlsx", "zip", "csv.bz2", "csv.gz", "json", "h5", "sqlite", "duckdb")
DAMAGED = (b"\0", b"x" * 999, b"ARROW1\0\0" + b"\xff" * 99, b"FEA1xxxx", b"PK\3\4" + b"\0" * 99,
           b"SQLite format 3\0" + b"\xff" * 99)  # fmt: skip


@pytest.mark.parametrize("name", [f"log.{ending}" for ending in FORMS])
@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_told_in_one_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as told:
        count_log(tmp_path / name)
    assert name in str(told.value) and "\n" not in str(told.value)


LAKE = {"episode_id": [0, 0, 1, 1, 2], "step": [0, 1, 0, 1, 0], "state": [0, 1, 0, 2, 0],
        "action": [1, 0, 1, 1, 0], "reward": [0.0, 1.0, 0.5, 0.0, 2.0],
        "terminated": [False, True, False, False, True],
        "truncated": [False, False, False, True, False]}  # fmt: skip
"""Five steps whose successors are those of the next rows."""


def lake():
    return count_log(pa.table(LAKE))


def flat_arrays(file):
    """What d3rlpy's first format, and D4RL, keep."""
    file["observations"] = np.array(LAKE["state"], np.float32)[:, None]
    file["actions"] = np.array(LAKE["action"])[:, None]
    file["rewards"] = np.array(LAKE["reward"], np.float32)
    file["terminals"] = np.array(LAKE["terminated"], np.float32)
    over = np.array(LAKE["terminated"]) | np.array(LAKE["truncated"])
    file["episode_terminals"] = over.astype(np.float32)


def test_flat_hdf5(tmp_path):
    h5py = needed("h5py")
    with h5py.File(tmp_path / "log.h5", "w") as file:
        flat_arrays(file)
    assert_same_counts_and_policy(count_log(tmp_path / "log.h5"), lake())


def test_d3rlpy_hdf5(tmp_path):
    h5py = needed("h5py")
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        file["columns"] = ["observations", "actions", "rewards", "terminated"]
        file["num_episodes"], file["version"] = 3, "2.1"
        for i, (start, stop) in enumerate([(0, 2), (2, 4), (4, 5)]):
            file[f"observations_{i}"] = np.array(LAKE["state"])[start:stop, None]
            file[f"actions_{i}"] = np.array(LAKE["action"])[start:stop, None]
            file[f"rewards_{i}"] = np.array(LAKE["reward"])[start:stop, None]
            file[f"terminated_{i}"] = LAKE["terminated"][stop - 1]
    assert_same_counts_and_policy(count_log(tmp_path / "log.hdf5"), lake())


def test_vectors_in_hdf5_are_states_of_several_columns(tmp_path):
    h5py = needed("h5py")
    with h5py.File(tmp_path / "log.h5", "w") as file:
        flat_arrays(file)
        del file["observations"]
        file["observations"] = np.linspace(0, 1, 10).reshape(5, 2)
    counts = count_log(tmp_path / "log.h5", bins={"state_0": [0.5], "state_1": [0.5]})
    low, high = "(-inf, 0.5)", "[0.5, inf)"
    assert set(counts.states.labels) == {(low, low), (low, high), (high, high)}


@pytest.mark.parametrize("how", ["external link", "soft link", "external data", "virtual", "huge"])
def test_hdf5_reads_nothing_outside_the_file(tmp_path, how):
    h5py = needed("h5py")
    (tmp_path / "secret").write_bytes(b"\1" * 40)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["observations"] = np.arange(5)
    with h5py.File(tmp_path / "log.h5", "w") as file:
        flat_arrays(file)
        del file["observations"]
        if how == "external link":
            file["observations"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "observations")
        elif how == "soft link":
            file["observations"] = h5py.SoftLink("/rewards")
        elif how == "external data":
            outside = [(str(tmp_path / "secret"), 0, 40)]
            file.create_dataset("observations", (5,), "i8", external=outside)
        elif how == "virtual":
            layout = h5py.VirtualLayout((5,), "i8")
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "observations", (5,))
            file.create_virtual_dataset("observations", layout)
        else:
            file.create_dataset("observations", (10**12,), "f8", chunks=(1024,))
    told = "unpacks to more than 4 GiB" if how == "huge" else "'observations' (is a link|keeps)"
    with pytest.raises(InputError, match=told):
        count_log(tmp_path / "log.h5")


def test_minari_by_id_and_by_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = three_lakes("lake/expert-v0")
    truth = Counts.from_log(from_minari(dataset))
    assert_same_counts_and_policy(count_log("minari:lake/expert-v0"), truth)
    assert_same_counts_and_policy(count_log(f"minari:{tmp_path / 'lake' / 'expert-v0'}"), truth)
    with pytest.raises(InputError, match="get it with `minari download lake/expert-v1`"):
        count_log("minari:lake/expert-v1")
    (tmp_path / "nothing" / "data").mkdir(parents=True)
    for name, told in (("", "names no dataset"), (tmp_path / "nothing", "Minari dataset")):
        with pytest.raises(InputError, match=told):
            count_log(f"minari:{name}")


class Web:
    """A web server on loopback, with some files; one needs a name and a password."""

    def __init__(self, files):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                proof = "Basic " + base64.b64encode(b"ann:s3cret").decode()
                name = self.path.partition("?")[0].lstrip("/")
                if name.startswith("private") and self.headers["Authorization"] != proof:
                    self.send_error(401)
                elif name in files:
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(files[name])
                else:
                    self.send_error(404)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def web(csv, tmp_path):
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("log.csv", csv)
    parquet = write(TABLE, tmp_path / "log.parquet").read_bytes()
    served = {"log.csv": csv.encode(), "a b/log.csv.gz": gzip.compress(csv.encode()),
              "log.parquet": parquet, "log.zip": (tmp_path / "log.zip").read_bytes(),
              "private.csv": csv.encode(), "broken.csv": b"a,b\n1\n1,2,3\n", "broken.xlsx": b"PK",
              "a%20b/log.csv.gz": gzip.compress(csv.encode())}  # fmt: skip
    running = Web(served)
    yield running
    running.stop()


@pytest.mark.parametrize(
    "name", ["log.csv", "log.parquet", "a%20b/log.csv.gz", "log.zip", "log.zip#log.csv",
             "log.csv?signature=s3cret"]
)  # fmt: skip
def test_files_of_the_web(web, name):
    same(f"http://{web.host}/{name}")


def test_a_name_and_a_password_for_the_web(web):
    same(f"http://ann:s3cret@{web.host}/private.csv")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nosuch.csv", "404"),
        ("private.csv", "401"),
        ("log", "the name before any \\? must end like a file name"),
        ("broken.csv", "broken.csv"),
        ("broken.xlsx", "broken.xlsx"),
    ],
)
def test_trouble_with_the_web_is_one_line_without_secrets(web, name, told):
    with pytest.raises(InputError, match=told) as raised:
        count_log(f"http://bob:s3cret@{web.host}/{name}?signature=s3cret")
    assert "s3cret" not in str(raised.value) and "\n" not in str(raised.value)
    assert str(staging.private_path("").parent) not in str(raised.value)


def test_a_web_server_that_is_not_there():
    with pytest.raises(InputError, match="check the address, the network and your credentials"):
        count_log("http://127.0.0.1:1/log.csv")


def test_objects_of_s3(csv, monkeypatch):
    """Arrow's S3 client against a server that knows the two requests for reading an object."""
    for name, value in (("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "s3cret"),
                        ("AWS_EC2_METADATA_DISABLED", "true")):  # fmt: skip
        monkeypatch.setenv(name, value)
    content = gzip.compress(csv.encode())

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(b"")

        def do_GET(self):
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            self.answer(content[int(first) : int(last) + 1])

        def answer(self, part):
            if self.path != "/bucket/2026/log.csv.gz":
                self.send_error(404)
                return
            self.send_response(206 if part else 200)
            self.send_header("Content-Length", str(len(part or content)))
            self.end_headers()
            self.wfile.write(part)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"?endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
    same(f"s3://bucket/2026/log.csv.gz{place}")
    with pytest.raises(InputError, match=r"cannot read 's3://bucket/nosuch\.csv") as raised:
        count_log(f"s3://bucket/nosuch.csv{place}")
    assert "s3cret" not in str(raised.value) and "\n" not in str(raised.value)
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_the_separator_that_excel_writes_above_the_names_is_taken(separator, mark, tmp_path):
    lines = ["episode_id,step,state,action,reward", "a,0,x,go,1", "a,1,y,go,2"]
    text = "\r\n".join(line.replace(",", separator) for line in lines)
    (tmp_path / "log.csv").write_text(f"{mark}sep={separator}\r\n{text}\r\n", "utf-8", newline="")
    log = read_log(tmp_path / "log.csv")
    assert (len(log), log.states.labels, log.reward.tolist()) == (2, ("x", "y"), [1.0, 2.0])


def test_a_source_shows_how_its_text_is_written():
    assert repr(Source("log.csv")) == "Source('log.csv')"
    shown = "Source('log.csv', encoding='latin-1', decimal=',', separator='.')"
    assert repr(Source("log.csv", encoding="latin-1", decimal=",", separator=".")) == shown
