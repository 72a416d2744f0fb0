"""What every fit on a dense design says, compared with dense formulas and honest retraining.

Guards `bayessel.linear.design_fit`, `bayessel.linear.spectrum`.
"""

import numpy as np
import pytest

from bayessel import linear
from bayessel._fingerprint import fingerprint
from bayessel.basis import RBFDictionary
from bayessel.fit import Fit
from bayessel.linear.widths.rvm_width import fit_rvm_width
from tests.oracles import linear as oracles


def data(rng, n=60, d=2):
    X = rng.uniform(-1, 1, size=(n, d))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n) + 4.0


FITS = {
    "evidence": lambda Phi, t: linear.fit_evidence(Phi, t, centre=True),
    "mackay": lambda Phi, t: linear.fit_evidence(Phi, t, centre=True, method="mackay"),
    "ridge": lambda Phi, t: linear.fit_ridge(Phi, t, centre=True),
    "local ridge": lambda Phi, t: linear.fit_ridge(Phi, t, penalty="local", centre=True),
    "stream": lambda Phi, t: linear.fit_evidence_stream([(Phi[:20], t[:20]), (Phi[20:], t[20:])], centre=True),
}


@pytest.mark.parametrize("name", FITS)
def test_predictions_hold_the_function_and_the_noise_apart(rng, name):
    Phi, t = rng.normal(size=(60, 4)), rng.normal(size=60)
    fit = FITS[name](Phi, t)
    assert isinstance(fit, Fit) and fit.n_rows == 60 and fit.seconds > 0.0 and fit.optima
    new = rng.normal(size=(5, 4))
    there = fit.predict(new)
    alpha = np.broadcast_to(fit.alpha, 4)
    kept = np.isfinite(alpha)
    C, F = Phi[:, kept] - Phi[:, kept].mean(axis=0), new[:, kept] - Phi[:, kept].mean(axis=0)
    Sigma = np.linalg.inv(fit.beta * C.T @ C + np.diag(alpha[kept]))
    mean = t.mean() + F @ (fit.beta * Sigma @ C.T @ (t - t.mean()))
    variance = np.einsum("ij,jk,ik->i", F, Sigma, F) + 1 / (60 * fit.beta)
    np.testing.assert_allclose(there.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(there.function.variance, variance, rtol=1e-8)
    np.testing.assert_allclose(there.variance, variance + 1 / fit.beta, rtol=1e-8)


@pytest.mark.parametrize("n", [30, 3000])
@pytest.mark.parametrize("name", ["evidence", "ridge", "local ridge"])
def test_leave_one_out_is_honest_retraining(rng, name, n):
    """Small designs keep their singular vectors; large ones find the same from their rows."""
    Phi, t = rng.normal(size=(n, 20 if n > 100 else 3)), rng.normal(size=n) + 2.0
    fit = linear.fit_evidence(Phi, t, centre=True) if name == "evidence" else FITS[name](Phi, t)
    found = fit.leave_one_out()
    for i in range(0, n, n // 3):
        rest = np.delete(np.arange(n), i)
        there = linear.posterior(Phi[rest], t[rest], fit.alpha, fit.beta, centre=True).predict(Phi[[i]])
        np.testing.assert_allclose(found.errors[i], t[i] - there.mean[0], rtol=1e-7)
        np.testing.assert_allclose(found.variances[i], there.variance[0], rtol=1e-7)
        np.testing.assert_allclose(found.log_densities[i], there.log_density(t[[i]])[0], rtol=1e-7)


def test_fits_name_their_data(rng):
    Phi, t = rng.normal(size=(30, 3)), rng.normal(size=30)
    spectrum = linear.Spectrum.of(Phi, t, rows=True)
    for fit in (linear.fit_evidence(Phi, t), linear.fit_evidence(spectrum), linear.fit_ridge(Phi, t, penalty="local")):
        assert fit.fingerprint == fingerprint(Phi, t) and fit.target_fingerprint == fingerprint(t)
    assert linear.fit_evidence(spectrum.retarget(-t)).fingerprint == fingerprint(Phi, -t)
    streamed = linear.fit_evidence_stream([(Phi, t)])
    assert streamed.fingerprint == streamed.target_fingerprint == ""
    with pytest.raises(ValueError, match="a stream keeps no rows"):
        streamed.leave_one_out()


def test_evidences_say_what_they_are(rng):
    Phi, t = rng.normal(size=(30, 3)), rng.normal(size=30)
    fit = linear.fit_evidence(Phi, t, centre=True)
    assert (fit.evidence.kind, fit.evidence.maximised) == ("type2", ("alpha", "beta"))
    assert fit.evidence.integrated == ("weights", "bias") and fit.log_evidence == fit.optima[0].log_evidence
    ridge = linear.fit_ridge(Phi, t)
    assert (ridge.evidence.kind, ridge.evidence.maximised) == ("plug-in", ())
    np.testing.assert_allclose(ridge.log_evidence, oracles.log_evidence(Phi, t, ridge.alpha, ridge.beta), rtol=1e-9)
    local = linear.fit_ridge(Phi, t, penalty="local")
    assert local.optima[0].value == local.value and np.array_equal(local.optima[0].lam, local.lam)


@pytest.mark.parametrize("fit_widths", [linear.fit_abf, fit_rvm_width])
@pytest.mark.parametrize("shared", [False, True])
def test_fitted_widths_predict_from_inputs(rng, fit_widths, shared):
    X, t = data(rng)
    found = fit_widths(X, t, shared=shared)
    assert isinstance(found, Fit) and found.n_rows == 60 and found.seconds > 0.0 and found.optima
    assert "widths" in found.evidence.maximised and found.log_evidence == found.fit.log_evidence
    assert found.fingerprint == fingerprint(X, t) and found.target_fingerprint == fingerprint(t)
    new = rng.uniform(-1, 1, size=(7, 2))
    there = found.predict(new)
    Phi = RBFDictionary(X, np.broadcast_to(found.widths, 2), bias=True).design(new)
    if fit_widths is linear.fit_abf:
        expected = found.fit.predict(Phi[:, :-1])
        np.testing.assert_allclose(there.mean, expected.mean, rtol=1e-9)
        np.testing.assert_allclose(there.variance, expected.variance, rtol=1e-9)
        np.testing.assert_array_equal(found.leave_one_out().errors, found.fit.leave_one_out().errors)
    else:
        H = RBFDictionary(X, np.broadcast_to(found.widths, 2), bias=True).design(X)[:, found.fit.basis]
        F = Phi[:, found.fit.basis]
        mu, Sigma = oracles.posterior(H, t, found.fit.alpha, found.fit.beta)
        np.testing.assert_allclose(there.mean, F @ mu, rtol=1e-6)
        np.testing.assert_allclose(there.function.variance, np.einsum("ij,jk,ik->i", F, Sigma, F), rtol=1e-5)


def test_names_of_data_tell_shapes_apart():
    """The same numbers in another shape, or cut elsewhere, are other data."""
    six = np.arange(6.0)
    shapes = [(six,), (six[:, None],), (six[None],), (six.reshape(2, 3),), (six.reshape(3, 2),), (six[:4], six[4:])]
    assert len({fingerprint(*arrays) for arrays in shapes}) == len(shapes)


@pytest.mark.parametrize("centre", [False, True])
def test_another_target_on_a_design_that_spans_everything_leaves_nothing(rng, centre):
    Phi, other = rng.normal(size=(5, 5 - centre)), rng.normal(size=5) + 9.0
    moved = linear.Spectrum.of(Phi, rng.normal(size=5), centre=centre, rows=True).retarget(other)
    fresh = linear.Spectrum.of(Phi, other, centre=centre, rows=True)
    assert moved.rss == fresh.rss == 0.0
    np.testing.assert_allclose(moved.z, fresh.z, rtol=1e-9)
    assert moved.fingerprint == fresh.fingerprint and moved.tss == pytest.approx(fresh.tss, rel=1e-12)
    np.testing.assert_allclose(
        moved.residuals(np.array([0.3])), fresh.residuals(np.array([0.3])), rtol=1e-9, atol=1e-12
    )
