"""What a run keeps on disk: damage is repaired where a crash explains it, and refused elsewhere, with the reason.

Guards `bayessel.samplers.run.store`, `bayessel.samplers.run.fingerprint`, `bayessel.samplers.run.identity`,
`bayessel.samplers.run.step_states`, `bayessel.work.json_values`.
"""

import json
import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pymc as pm
import pytest
from pymc.util import RandomGeneratorState

from bayessel.errors import DataMismatchError, StoreWarning
from bayessel.samplers.run.fingerprint import fingerprints
from bayessel.samplers.run.kernel import Block, Kernel, Position
from bayessel.samplers.run.step_states import from_tree, to_tree
from bayessel.samplers.run.store import ChainStore
from bayessel.work.json_values import UnstorableError, dumps, loads
from tests.problems.runs import Walk, model, plain_python, process, same, sample, wait_for, walk


@pytest.fixture(scope="module")
def made():
    with plain_python():
        yield model()


@pytest.fixture(scope="module")
def whole(made):
    return sample(made, walk(made))


@pytest.fixture(scope="module")
def stored(made, tmp_path_factory):
    """A store of several records per chain: tuning, then three times more draws."""
    folder = tmp_path_factory.mktemp("stored") / "run"
    for draws in (10, 30, 60):
        sample(made, walk(made), draws=draws, store=folder)
    return folder


@pytest.fixture
def store(stored, tmp_path):
    """A copy to be damaged."""
    return shutil.copytree(stored, tmp_path / "run")


def records(path):
    """Positions of the records of a chain's file."""
    data, found, at = path.read_bytes(), [], 0
    while (at := data.find(b"bsr1", at)) >= 0:
        found.append(at)
        at += 1
    return [*found, len(data)]


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    path.write_bytes(bytes(data))


# --- states ---------------------------------------------------------------------------------------------------------


def test_states_come_back_bit_by_bit(made, rng):
    steps = walk(made)
    steps.setup_chain(rng, 10, 10)
    point = made.initial_point(0)
    for _ in range(5):
        point, _ = steps.step(point)
    before = steps.sampling_state
    tree = to_tree(before)
    for way in (tree, loads(dumps(tree))):
        state = from_tree(way, steps.sampling_state)
        steps.sampling_state = state
        after = [steps.step(point)[0]["x"] for _ in range(3)]
        steps.sampling_state = before
        assert np.array_equal(after, [steps.step(point)[0]["x"] for _ in range(3)])
        steps.sampling_state = before


@pytest.mark.parametrize(
    "value",
    [
        1.0 / 3.0,
        float("inf"),
        2**127 + 1,
        True,
        None,
        "text",
        np.float64(0.1),
        np.float32(0.1),
        np.int64(-3),
        np.bool_(True),
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(5.0),
        np.empty((0, 3)),
        np.array(["a", "bc"]),
        [1, (2.0, None, [np.zeros(2)])],
        {"a": {"b": (1, 2)}, 3: np.ones(1)},
    ],
    ids=repr,
)
def test_values_keep_type_dtype_and_order(value):
    again = from_tree(loads(dumps(to_tree(value))), value)
    assert type(again) is type(value)
    assert repr(again) == repr(value)
    if isinstance(value, np.ndarray):
        assert again.dtype == value.dtype and again.flags.f_contiguous == value.flags.f_contiguous
        assert again.flags.writeable


def test_generators_keep_their_children(rng):
    rng.spawn(2)
    again = from_tree(loads(dumps(to_tree([rng, pm.util.get_state_from_generator(rng)]))), [rng, None])
    assert isinstance(again[1], RandomGeneratorState)
    other = pm.util.random_generator_from_state(again[1])
    child = [one.spawn(1)[0].random() for one in (rng, again[0], other)]
    assert child[0] == child[1] == child[2]
    assert rng.random() == again[0].random() == other.random()


def test_what_cannot_be_written_is_refused_with_its_place(made):
    with pytest.raises(UnstorableError, match=r"state\[0\]\['f'\] is a function"):
        to_tree([{"f": lambda: 0}])
    with pytest.raises(UnstorableError, match="array of object"):
        to_tree(np.array([object()]))
    steps = walk(made)
    steps.past = [open]
    steps._reset = lambda: None
    with pytest.raises(UnstorableError, match=r"Walk\.past\[0\]"):
        sample(made, steps)


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chain", "left"), [(0, 0.0), (2, 0.02), (1, 0.3), (0, 0.999)])
def test_a_cut_tail_is_sampled_again(made, whole, store, chain, left):
    path = store / f"chain-{chain}.log"
    *_, last, end = records(path)
    os.truncate(path, last + 4 + int(left * (end - last - 4)))
    with pytest.warns(StoreWarning, match=r"chain-\d\.log was cut short .* draws of this chain are lost"):
        again = sample(made, walk(made), store=store)
    assert same(whole, again)
    assert 0 < again.attrs["n_gradient_evaluations_now"] < again.attrs["n_gradient_evaluations"] / 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(whole, sample(made, walk(made), store=store))


def test_the_warning_counts_the_draws(made, store):
    path = store / "chain-1.log"
    *_, last, _ = records(path)
    os.truncate(path, last + 200)
    with pytest.warns(StoreWarning, match=": 30 draws of this chain are lost"):
        sample(made, walk(made), store=store)


def test_a_damaged_last_record_counts_as_cut(made, whole, store):
    path = store / "chain-1.log"
    flip(path, path.stat().st_size - 5)
    with pytest.warns(StoreWarning, match="chain-1.log"):
        assert same(whole, sample(made, walk(made), store=store))


@pytest.mark.parametrize("inside", [1, 6, 25, 33, 60, 400])
def test_damage_in_the_middle_is_refused(made, store, inside):
    """In the magic, the numbers, the checksums, or the payload of a record that is not the last."""
    path = store / "chain-1.log"
    before = {one: one.read_bytes() for one in store.iterdir()}
    flip(path, records(path)[1] + inside)
    damaged = path.read_bytes()
    with pytest.raises(ValueError, match=r"chain-1\.log is damaged at byte \d+, in the middle"):
        sample(made, walk(made), store=store)
    assert path.read_bytes() == damaged  # refused means untouched
    assert all(one.read_bytes() == data for one, data in before.items() if one != path)


def test_a_missing_record_is_refused(made, store):
    path = store / "chain-1.log"
    data, at = path.read_bytes(), records(path)
    path.write_bytes(data[: at[2]] + data[at[3] :])
    with pytest.raises(ValueError, match=r"goes from draw \d+ on to draw \d+"):
        sample(made, walk(made), store=store)


@pytest.mark.parametrize("where", [2, -1])
def test_a_repeated_record_is_refused(made, store, where):
    """Its checksums are right, but the draws after it would not go on from those before."""
    path = store / "chain-1.log"
    data, at = path.read_bytes(), records(path)
    path.write_bytes(data[: at[where]] + data[at[1] : at[2]] + data[at[where] :])
    with pytest.raises(ValueError, match=r"goes from draw \d+ on to draw \d+: records are missing or repeated"):
        sample(made, walk(made), store=store)


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_a_damaged_header_is_refused(made, store, at):
    path = store / "header.json"
    flip(path, int(at * path.stat().st_size))
    with pytest.raises(ValueError, match=r"header\.json is damaged .* restore the file, or begin another store"):
        sample(made, walk(made), store=store)


def test_an_edited_header_is_refused(made, store):
    path = store / "header.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"tune": 31}))
    with pytest.raises(ValueError, match="its checksum is"):
        sample(made, walk(made), store=store, tune=31)
    path.write_text(json.dumps(content | {"format": "bayessel run 9"}))
    with pytest.raises(ValueError, match="'bayessel run 9'; this release reads 'bayessel run 1'"):
        sample(made, walk(made), store=store)


def test_a_lost_header_or_chain_is_refused(made, store):
    (store / "header.json").rename(store.parent / "header.json")
    with pytest.raises(ValueError, match=r"header\.json is missing"):
        sample(made, walk(made), store=store)
    (store.parent / "header.json").rename(store / "header.json")
    (store / "chain-2.log").unlink()
    with pytest.raises(ValueError, match=r"chain-2\.log is missing"):
        sample(made, walk(made), store=store)


def test_chains_are_not_mixed(made, store, tmp_path):
    other = tmp_path / "other"
    sample(made, walk(made), store=other)
    shutil.copy(store / "chain-0.log", store / "chain-1.log")
    with pytest.raises(ValueError, match=r"is not chain 1 of this store \(it is chain 0 of store"):
        sample(made, walk(made), store=store)
    shutil.copy(other / "chain-1.log", store / "chain-1.log")
    with pytest.raises(ValueError, match="chains of different runs are not mixed"):
        sample(made, walk(made), store=store)


def test_a_crash_while_the_store_was_made(made, whole, store):
    """Before the header: nothing was there. After it, before a chain's first record: the chain begins anew."""
    path = store / "chain-2.log"
    os.truncate(path, records(path)[0])
    assert same(whole, sample(made, walk(made), store=store))
    (store / "header.json").unlink()
    for path in store.glob("chain-*.log"):
        os.truncate(path, records(path)[0])
    assert same(whole, sample(made, walk(made), store=store))


# --- other runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"random_seed": 8}, r"seed is 7 there and 8 here"),
        ({"tune": 31}, r"tune is 30 there and 31 here"),
        ({"chains": 2}, r"chains is 3 there and 2 here"),
        ({"initvals": {"x": np.ones(3)}}, r"initvals is None there and \{'x': \[1\.0, 1\.0, 1\.0\]\} here"),
    ],
)
def test_another_run_is_refused(made, store, change, said):
    with pytest.raises(ValueError, match=said):
        sample(made, walk(made), store=store, **change)


def test_other_steps_are_refused(made, store):
    with pytest.raises(ValueError, match=r"Walk.* is .* there and .* here"):
        sample(made, walk(made, size=0.6), store=store)
    with made:
        steps = [Walk([made["x"]]), Walk([made["s"]])]
    with pytest.raises(ValueError, match=r"steps is .* there and .* here; pass steps with the stored settings"):
        sample(made, steps, store=store)


def test_another_model_or_other_data_are_refused(store):
    with plain_python():
        other = model(scale=2.0)
        with pytest.raises(ValueError, match=r"model is [0-9a-f]{16} there and [0-9a-f]{16} here"):
            sample(other, walk(other), store=store)
        other = model(y=np.array([0.0, 1.0, 2.0, 4.0]))
        with pytest.raises(DataMismatchError, match=r"fingerprints [0-9a-f]{16} there, [0-9a-f]{16} here"):
            sample(other, walk(other), store=store)


def test_data_changed_in_place_are_seen(store):
    with plain_python():
        changed = model()
        with changed:
            pm.set_data({"y_data": np.array([0.0, 1.0, 2.0, 4.0])})
        with pytest.raises(DataMismatchError):
            sample(changed, walk(changed), store=store)


def test_the_same_model_made_again_is_the_same(whole, store):
    with plain_python():
        again = model()
        assert same(whole, sample(again, walk(again), store=store))


def test_other_releases_are_said(made, whole, store, monkeypatch):
    monkeypatch.setattr("bayessel.samplers.run.identity.python_version", lambda: "4.0.0")
    with pytest.warns(StoreWarning, match=r"3\.\d+\.\d+, this is 4\.0\.0"):
        assert same(whole, sample(made, walk(made), store=store))


def test_nothing_is_overwritten(made, store, tmp_path):
    before = {path: path.read_bytes() for path in store.iterdir()}
    with pytest.raises(ValueError, match="holds a run already, and resume=False"):
        sample(made, walk(made), store=store, resume=False)
    assert {path: path.read_bytes() for path in store.iterdir()} == before
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("It was a dark and stormy night.")
    with pytest.raises(ValueError, match=r"other files \(chapter\.tex\)"):
        sample(made, walk(made), store=tmp_path / "thesis")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="must be a folder"):
        sample(made, walk(made), store=tmp_path / "file")
    # an empty folder is as good as none
    (tmp_path / "empty").mkdir()
    sample(made, walk(made), store=tmp_path / "empty", resume=False)


def test_two_writers(made, store):
    running = ChainStore(store)
    with pytest.raises(ValueError, match="is in use by another run"):
        sample(made, walk(made), store=store)
    running.close()
    sample(made, walk(made), store=store)


def test_two_processes_and_a_lock_that_ends_with_its_owner(made, tmp_path):
    """Workers of a killed run do not keep its store locked."""
    import signal

    folder = tmp_path / "run"
    with process(lambda: sample(made, walk(made, seconds=0.05), draws=1000, store=folder, cores=2)) as child:
        wait_for(lambda: sum(one.stat().st_size for one in folder.glob("chain-*.log")) > 3000)
        with pytest.raises(ValueError, match="is in use by another run"):
            sample(made, walk(made), store=folder, draws=1000)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        ChainStore(folder).close()


def test_no_pickles(stored):
    """A store is data: JSON and raw numbers."""
    for path in stored.glob("chain-*.log"):
        data = path.read_bytes()
        assert b"\x80\x04\x95" not in data and b"\x80\x05\x95" not in data


def test_records_of_any_shape(tmp_path, rng):
    """Integers, scalars, matrices, no draws at all: what is read is what was written."""
    point = {"a": np.array(1.5), "k": np.array([1, 2]), "m": rng.normal(size=(2, 3)), "none": np.empty((0,))}
    first = Position(0, 0, point, [{"@": "dict", "items": []}])
    store = ChainStore(tmp_path / "run")
    store.create({"chains": 1, "tune": 2, "versions": {}}, [first])
    draws = {name: rng.normal(size=(1, *value.shape)).astype(value.dtype) for name, value in point.items()}
    stats = {"f": rng.normal(size=3), "b": np.array([True, False, True]), "v": rng.normal(size=(3, 2))}
    store.append(Block(0, 0, 3, draws, stats, Position(0, 3, point, first.state), [0.1], 0.2, ("odd",)))
    # a crash may come now: what was appended is on the disk
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    store.close()
    store = ChainStore(tmp_path / "copy")
    (found,) = store.read(store.header(), point)
    store.close()
    (block,) = found.blocks
    assert block.dropped == ("odd",) and block.seconds == [0.1] and found.position.done == 3
    for mine, theirs in ((block.draws, draws), (block.stats, stats), (found.position.point, point)):
        assert list(mine) == list(theirs)
        for name, value in theirs.items():
            assert np.array_equal(mine[name], value) and mine[name].dtype == value.dtype


def test_kernel_gives_the_steps_back(made):
    steps = walk(made)
    before = dumps(to_tree(steps.sampling_state))
    kernel = Kernel([steps], 5, 5)
    position = kernel.begin(0, made.initial_point(0), np.random.default_rng(0))
    kernel.run(position, 8, 10.0)
    assert dumps(to_tree(steps.sampling_state)) != before
    kernel.restore()
    assert dumps(to_tree(steps.sampling_state)) == before


# --- names of models and data ---------------------------------------------------------------------------------------


def described(shape=2.0, rows=6, seed=0, scale=1.0, sign=1.0, extra=False, design=None, link="exp"):
    """A model with a bit of everything that a graph is made of."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, 2)), rng.normal(size=rows)
    with pm.Model() as made:
        a = pm.Gamma("a", shape, 2.0)
        w = pm.Normal("w", 0.0, scale / pm.math.sqrt(a), shape=2)
        p = pm.Dirichlet("p", np.ones(3))
        k = pm.Poisson("k", 3.0)
        mean = pm.Data("X", X if design is None else design) @ w + X @ w
        pm.CustomDist("c", a, logp=lambda value, a: -sign * a * value**2, observed=np.ones(2))
        pm.Deterministic("d", getattr(pm.math, link)(w.sum()) + k + p[0])
        pm.Potential("u", -(w[0] ** 2))
        pm.Normal("y", mean, 1.0, observed=pm.Data("y_data", y))
        if extra:
            pm.Potential("v", w[1])
    return made


@pytest.mark.parametrize("change", [{"shape": 2.5}, {"scale": 3.0}, {"sign": 2.0}, {"extra": True}, {"link": "cos"}])
def test_another_model_has_another_name(change):
    model_name, data_name = fingerprints(described())
    assert fingerprints(described()) == (model_name, data_name)
    other, data = fingerprints(described(**change))
    assert other != model_name and data == data_name


def test_other_data_have_another_name():
    model_name, data_name = fingerprints(described())
    for change in ({"seed": 1}, {"rows": 7}, {"design": np.zeros((6, 2))}):
        other, data = fingerprints(described(**change))
        assert other == model_name and data != data_name
    assert fingerprints(described(design=np.zeros((6, 2)))) == fingerprints(described(design=-np.zeros((6, 2))))


@pytest.mark.slow
def test_names_do_not_change_from_process_to_process():
    code = "from tests.samplers.run.test_store import described, fingerprints; print(*fingerprints(described()))"
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert tuple(said.stdout.split()) == fingerprints(described())
