"""Models of packages: there where the package is installed, made of it without weights, and absent in one line."""

import copy
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from compare.errors import UnknownNameError
from compare.plans import jobs
from compare.plans.settings import Settings
from compare.workloads import models
from compare.workloads.models import MODELS
from graphs import tree

OF_PACKAGES = [name for name, model in MODELS.items() if model.package]


@pytest.fixture
def none_installed(monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda _: None)


def test_a_row_of_the_table_is_a_model_of_the_suite():
    assert list(vars(models.TABLE)) == OF_PACKAGES
    assert {MODELS[name].package for name in OF_PACKAGES} == {"torchvision", "timm", "transformers"}
    for name in OF_PACKAGES:
        holder, function = models.holder_of(models.source(name))
        assert holder is getattr(models.TABLE, name)
        assert function is holder.loss
        assert MODELS[name].varies == holder.varies


def test_a_file_of_ours_is_where_it_was():
    pytest.importorskip("torch")
    holder, function = models.holder_of(models.source("pinn"))
    assert holder.__name__ == "compare.workloads.models.pinn"
    assert function is holder.loss


def test_what_is_not_installed_is_absent_and_said_in_one_line(none_installed):
    assert not {cell.workload for cell in jobs.cells(Settings("models"))} & set(OF_PACKAGES)
    said = jobs.missing_packages()
    assert said == "left out: 12 models of torchvision, timm and transformers; pip install 'graphduel[models]'"


def test_one_that_is_asked_for_and_not_installed_is_refused_with_the_package(none_installed):
    with pytest.raises(
        UnknownNameError, match=r"timm_vit_tiny is a model of timm, which is not installed; pip install"
    ):
        jobs.cells(Settings("models", only="timm_*"))


def test_what_is_installed_is_measured_after_the_files(monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda package: package == "timm" or None)
    names = [cell.workload for cell in jobs.cells(Settings("models"))]
    assert names[-3:] == [name for name in OF_PACKAGES if MODELS[name].package == "timm"]
    assert jobs.missing_packages().startswith("left out: 9 models of torchvision and transformers;")
    monkeypatch.setattr(models, "find_spec", lambda _: True)
    assert jobs.missing_packages() == ""


# Each adapter, over a package that is made up: it asks for no weights, and calls what it has made


@pytest.fixture
def made_up(monkeypatch):
    torch = pytest.importorskip("torch")
    model, asked = torch.nn.Linear(3 * 64 * 64, models.CLASSES), []

    class Images(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = model

        def forward(self, images):
            return self.inside(images.flatten(1))

    def make(name, **options):
        asked.append((name, options))
        return Images()

    package = {
        "timm": SimpleNamespace(create_model=make),
        "torchvision": SimpleNamespace(models=SimpleNamespace(get_model=make)),
    }
    for name, fake in package.items():
        module = ModuleType(name)
        vars(module).update(vars(fake))
        monkeypatch.setitem(sys.modules, name, module)
    return asked


@pytest.mark.parametrize("name", [name for name in OF_PACKAGES if MODELS[name].package != "transformers"])
def test_a_model_of_images_is_made_without_weights(made_up, name):
    holder, loss = models.holder_of(models.source(name))
    (call,) = holder.batches()
    assert np.isfinite(float(loss(*call).detach()))
    ((asked, options),) = made_up
    assert asked in repr(holder.made)
    assert options["num_classes"] == models.CLASSES
    assert {"weights": None}.items() <= options.items() or {"pretrained": False}.items() <= options.items()


@pytest.mark.parametrize("name", [name for name in OF_PACKAGES if MODELS[name].package == "transformers"])
def test_a_model_of_transformers_is_made_of_its_configuration(monkeypatch, name):
    torch = pytest.importorskip("torch")

    class Made(torch.nn.Module):
        def __init__(self, config):
            super().__init__()
            self.config, self.weight = config, torch.nn.Parameter(torch.ones(()))

        def forward(self, images=None, input_ids=None, labels=None):
            logits = None if images is None else self.weight * images.mean((1, 2, 3))[:, None].expand(-1, 10)
            return SimpleNamespace(logits=logits, loss=self.weight * 2)

    package = ModuleType("transformers")
    row = getattr(models.TABLE, name)
    setattr(package, row.made.config, lambda **sizes: sizes)
    setattr(package, row.made.model, Made)
    monkeypatch.setitem(sys.modules, "transformers", package)
    calls = row.batches()
    assert len({call[1].shape for call in calls}) == (4 if row.varies else 1)
    assert calls[0][0].config == row.made.sizes
    assert calls[0][0] is calls[-1][0]  # one model is trained over all calls
    assert float(row.loss(*calls[0]).detach()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PACKAGES)
def test_a_model_of_an_installed_package_has_a_gradient(name):
    torch = pytest.importorskip("torch")
    if models.missing(name):
        pytest.skip(f"{MODELS[name].package} is not installed")
    holder, loss = models.holder_of(models.source(name))
    for call in holder.batches()[:2]:
        model, *_ = call
        gradients = torch.autograd.grad(loss(*call), list(model.parameters()), materialize_grads=True)
        assert all(bool(g.isfinite().all()) for g in gradients)


# A device: what a step makes must lie where its arguments lie. PyTorch's device without numbers stands for it


DECIDES = ("Cannot copy out of meta", "cannot be called on meta", "unimplemented", "no fake impl")
"""What it says of a step that reads numbers: only up to there is it tried."""


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("name", [name for name in MODELS if not MODELS[name].package])
def test_a_model_makes_nothing_that_lies_elsewhere(name):
    torch = pytest.importorskip("torch")
    dispatch = pytest.importorskip("torch.utils._python_dispatch")

    class OneDevice(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            leaves = tree.leaves((args, kwargs or {}))
            places = {leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.ndim}
            assert len(places) < 2 or "copy" in op.name(), f"{op.name()} of tensors on {places}"
            return op(*args, **(kwargs or {}))

    def moved(value):
        if isinstance(value, torch.nn.Module):
            return value._apply(lambda tensor: tensor.to("meta"))
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    holder, function = models.holder_of(models.source(name))
    calls = copy.deepcopy(holder.batches() if hasattr(holder, "batches") else holder.inputs)
    held = {key: value for key, value in vars(holder).items() if isinstance(value, torch.nn.Module)}
    before = copy.deepcopy(held)
    try:
        list(map(moved, held.values()))
        with OneDevice():
            out = function(*tree.tree_map(moved, calls[0]))
            out.requires_grad and out.backward()
        assert out.device.type == "meta"
    except (NotImplementedError, RuntimeError) as error:
        if not any(words in str(error) for words in DECIDES):
            raise
    finally:
        for key, module in held.items():
            module.load_state_dict(before[key].state_dict(), assign=True)
