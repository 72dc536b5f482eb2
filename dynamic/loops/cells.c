/* Calls of cells, noted to run later with others as ops are: dynamic/batching/cells.py. */

#include "waiting.h"

static int
add_value(Found *found, PyObject *value)
{
    PyObject *kind = kind_of(value), *run = run_of(value);
    if (kind == NULL || run == NULL)
        return -1;
    /* A parameter is the same in all calls of one signature. */
    if (SLOT(kind, waiting.parameter) != Py_True && add_input(found, run) < 0)
        return -1;
    return add_part(found, Py_NewRef(kind));
}

static int
add_array(Found *found, PyObject *array)
{
    PyObject *value = known_of(found->batch, array);
    if (value == NULL && !PyErr_Occurred())
        value = PyObject_CallFunctionObjArgs(meet, found->batch, array, NULL);
    if (value != NULL && !Py_IS_TYPE(value, Deferred)) {
        PyErr_Format(PyExc_TypeError, "a deferred value, not %s", Py_TYPE(value)->tp_name);
        Py_CLEAR(value);
    }
    int done = value == NULL ? -1 : add_value(found, value);
    Py_XDECREF(value);
    return done;
}

static int add_all(Found *found, PyObject *container, int nested);

/* 1 once an argument has been added, 0 where it is none of the commonest, -1 for an error. */
static int
add_argument(Found *found, PyObject *arg, int nested)
{
    if (Py_IS_TYPE(arg, Deferred))
        return add_value(found, arg);
    if (Py_IS_TYPE(arg, Tensor) || IS_ARRAY(arg))
        return add_array(found, arg);
    if (arg == Py_None)
        return add_part(found, Py_NewRef(arg));
    if (PyTuple_CheckExact(arg) || PyList_CheckExact(arg) || PyDict_CheckExact(arg))
        return nested < MOST_NESTED ? add_all(found, arg, nested + 1) : 0;
    if (!PyLong_CheckExact(arg) && !PyBool_Check(arg) && !PyUnicode_CheckExact(arg) && !PyFloat_CheckExact(arg))
        return 0;
    if (add_part(found, Py_NewRef(Py_TYPE(arg))) < 0)
        return -1;
    return add_part(found, PyFloat_CheckExact(arg) ? PyObject_Repr(arg) : Py_NewRef(arg));  /* 0.0 is not -0.0 */
}

static int
add_all(Found *found, PyObject *container, int nested)
{
    if (add_part(found, Py_NewRef(Py_TYPE(container))) < 0
        || add_part(found, PyLong_FromSsize_t(PyObject_Size(container))) < 0)
        return -1;
    /* As it is before anything is looked at. */
    PyObject *parts = PyDict_CheckExact(container) ? PyDict_Items(container) : PySequence_Tuple(container);
    int done = parts == NULL ? -1 : 1;
    for (Py_ssize_t i = 0; done > 0 && i < PySequence_Fast_GET_SIZE(parts); i++) {
        PyObject *part = PySequence_Fast_GET_ITEM(parts, i);
        if (PyList_CheckExact(parts)) {  /* a pair */
            done = add_part(found, Py_NewRef(PyTuple_GET_ITEM(part, 0)));
            part = PyTuple_GET_ITEM(part, 1);
        }
        if (done > 0)
            done = add_argument(found, part, nested);
    }
    Py_XDECREF(parts);
    return done;
}

/* Results as values: each an input, or a part of what the node makes, or a view of these; what is no value as it is. */
static PyObject *
value_for(PyObject *result, PyObject *node, const Found *found)
{
    PyObject *offset, *run, *kind, *index, *size;
    Py_ssize_t input;
    if (!PyArg_ParseTuple(result, "O!nOOO", KindOfValue, &kind, &input, &index, &size, &offset))
        return NULL;
    if (input >= 0)
        run = Py_XNewRef(PyList_GetItem(found->inputs, input));
    else if ((run = Part->tp_alloc(Part, 0)) != NULL) {
        SLOT(run, waiting.part_owner) = Py_NewRef(node);
        SLOT(run, waiting.index) = Py_NewRef(index);
        SLOT(run, waiting.part_size) = Py_NewRef(size);
        SLOT(run, waiting.part_level) = Py_XNewRef(SLOT(node, waiting.level));
    }
    if (run != NULL && offset != Py_None) {
        Py_ssize_t from = PyLong_AsSsize_t(offset);
        Py_SETREF(run, PyErr_Occurred() ? NULL : view_of(run, from));
    }
    return value_of(run, kind, found->batch);
}

static PyObject *
returned(PyObject *signature, PyObject *node, const Found *found)
{
    PyObject *listed = typed_slot(signature, waiting.results, &PyList_Type);
    PyObject *results = listed == NULL ? NULL : PyList_AsTuple(listed);
    PyObject *values = results == NULL ? NULL : PyList_New(PyTuple_GET_SIZE(results)), *made_ = NULL;
    for (Py_ssize_t i = 0; values != NULL && i < PyTuple_GET_SIZE(results); i++) {
        PyObject *result = PyTuple_GET_ITEM(results, i);
        PyObject *value = Py_IS_TYPE(result, Result) ? value_for(result, node, found) : Py_NewRef(result);
        if (value == NULL)
            Py_CLEAR(values);
        else
            PyList_SET_ITEM(values, i, value);
    }
    PyObject *build = values == NULL ? NULL : Py_XNewRef(slot_of(signature, waiting.build));
    if (build != NULL)
        made_ = PyObject_CallOneArg(build, values);
    Py_XDECREF(build);
    Py_XDECREF(values);
    Py_XDECREF(results);
    return made_;
}

static PyObject *
ordered(PyObject *inputs, PyObject *order)
{
    PyObject *result = order == NULL ? NULL : PyTuple_New(PyTuple_GET_SIZE(order));
    for (Py_ssize_t i = 0; result != NULL && i < PyTuple_GET_SIZE(order); i++) {
        PyObject *input = PyList_GetItem(inputs, PyLong_AsSsize_t(PyTuple_GET_ITEM(order, i)));
        if (input == NULL)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, Py_NewRef(input));
    }
    return result;
}

static PyObject *
noted_call(PyObject *signature, const Found *found)
{
    PyObject *inputs = ordered(found->inputs, typed_slot(signature, waiting.order, &PyTuple_Type)), *result = NULL;
    PyObject *bundle = inputs == NULL ? NULL : Py_XNewRef(typed_slot(signature, waiting.cell_bundle, Bundle));
    PyObject *node = bundle == NULL ? NULL : noted(Several, found->batch, bundle, found->depth, signature, inputs);
    Py_XDECREF(bundle);
    if (node != NULL)
        result = returned(signature, node, found);
    Py_XDECREF(node);
    Py_XDECREF(inputs);
    return result;
}

/* The signature of a call, by the parts of its key: a new reference. */
static PyObject *
signature_of(PyObject *const *args, const Found *found)
{
    PyObject *cells = Py_XNewRef(typed_slot(args[0], waiting.cells, &PyDict_Type));
    PyObject *key = cells == NULL ? NULL : PyList_AsTuple(found->parts);
    PyObject *signature = key == NULL ? NULL : PyDict_GetItemWithError(cells, key);
    if (signature != NULL)
        Py_INCREF(signature);
    else if (key != NULL && !PyErr_Occurred()) {
        signature = PyObject_CallFunctionObjArgs(sign, args[0], args[1], args[2], args[3], NULL);
        if (signature != NULL && PyDict_SetItem(cells, key, signature) < 0)
            Py_CLEAR(signature);
    }
    Py_XDECREF(key);
    Py_XDECREF(cells);
    if (signature != NULL && !Py_IS_TYPE(signature, CellSignature)) {
        PyErr_Format(PyExc_TypeError, "the signature of a cell, not %s", Py_TYPE(signature)->tp_name);
        Py_CLEAR(signature);
    }
    return signature;
}

/* defer_call(batch, f, args, options): what a cell returns, noted to be computed with others; NotImplemented where an
   argument is none of the commonest. */
PyObject *
defer_call(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 4 || !PyObject_TypeCheck(args[0], Batch) || !PyTuple_CheckExact(args[2])
        || !PyDict_CheckExact(args[3])) {
        PyErr_SetString(PyExc_TypeError, "defer_call takes a batch, a function, its arguments and its options");
        return NULL;
    }
    Found found = {args[0], PyList_New(0), PyList_New(0), 0};
    PyObject *signature = NULL, *result = NULL;
    int done = found.parts == NULL || found.inputs == NULL ? -1 : add_part(&found, Py_NewRef(args[1]));
    if (done > 0)
        done = add_part(&found, Py_NewRef(is_idle() ? Py_False : Py_True));
    for (int i = 2; done > 0 && i < 4; i++)
        done = add_all(&found, args[i], 0);
    if (done > 0 && (signature = signature_of(args, &found)) != NULL)
        result = noted_call(signature, &found);
    Py_XDECREF(signature);
    Py_XDECREF(found.parts);
    Py_XDECREF(found.inputs);
    return done == 0 ? Py_NewRef(Py_NotImplemented) : result;
}
