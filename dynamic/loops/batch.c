/* Deferring: an op noted to run later with others: dynamic/batching/batch.py. */

#include "waiting.h"

PyTypeObject *Batch, *Deferred, *Node, *Several, *View, *Part, *Result;
PyObject *never, *meet, *sign, *row_kind, *level_name, *zero;
Waiting waiting;

/* Where this thread's ops go; borrowed, NULL to run them. */
static PyObject *
batch_of_thread(void)
{
    PyObject *mode = mode_now(), *batch = mode == NULL ? NULL : PyTuple_GET_ITEM(mode, 2);
    return batch != NULL && Batch != NULL && PyObject_TypeCheck(batch, Batch) ? batch : NULL;
}

/* Deferral: an op on values of which some are deferred. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *op, *general;
    PyObject *sign;  /* of an op with options, or NULL */
    int arity;       /* -1: the inputs are one sequence */
} Deferral;

/* The value of an op: a view, or what a new node will make; NULL, without an error, where its line must be known. */
static PyObject *
value_by(PyObject *signature, PyObject *batch, PyObject *depth, PyObject *inputs, PyObject *first)
{
    PyObject *view = SLOT(signature, waiting.view), *out = SLOT(signature, waiting.out);
    if (view != Py_None)
        return value_of(view_of(first, PyLong_AsSsize_t(view)), out, batch);
    if (SLOT(signature, waiting.risky) != Py_False)
        return NULL;
    return value_of(noted(Node, batch, SLOT(signature, waiting.bundle), depth, signature, inputs), out, batch);
}

static PyObject *
noted_op(Deferral *deferral, PyObject *batch, PyObject *const *args)  /* NULL, without an error, to stand aside */
{
    PyObject *values[MOST_INPUTS], *depth = zero, *result = NULL;
    int arity = deferral->arity;
    for (int i = 0; i < arity; i++) {
        values[i] = Py_IS_TYPE(args[i], Deferred) ? args[i] : known_of(batch, args[i]);
        if (values[i] == NULL)
            return NULL;
        depth = deeper(depth, RUN(values[i]));
    }
    PyObject *key = PyTuple_New(2 + arity), *inputs = PyTuple_New(arity), *signature = NULL;
    if (key != NULL && inputs != NULL) {
        PyTuple_SET_ITEM(key, 0, Py_NewRef(deferral->op));
        PyTuple_SET_ITEM(key, 1, Py_NewRef(is_idle() ? Py_False : Py_True));
        for (int i = 0; i < arity; i++) {
            PyTuple_SET_ITEM(key, 2 + i, Py_NewRef(KIND(values[i])));
            PyTuple_SET_ITEM(inputs, i, Py_NewRef(RUN(values[i])));
        }
        signature = PyDict_GetItemWithError(SLOT(batch, waiting.signatures), key);
    }
    if (signature != NULL)
        result = value_by(signature, batch, depth, inputs, RUN(values[0]));
    Py_XDECREF(key);
    Py_XDECREF(inputs);
    return result;
}

/* An option as parts of a key that no other has: 1, 1.0 and True are three, and so are 0.0 and -0.0. 0 for what is no
   plain value. */
static int
add_option(Found *found, PyObject *option)
{
    if (option == Py_None || option == Py_Ellipsis)
        return add_part(found, Py_NewRef(option));
    if (add_part(found, Py_NewRef(Py_TYPE(option))) < 0)
        return -1;
    if (PySlice_Check(option)) {
        PySliceObject *slice = (PySliceObject *)option;
        int done = add_option(found, slice->start);
        if (done > 0)
            done = add_option(found, slice->stop);
        return done > 0 ? add_option(found, slice->step) : done;
    }
    if (PyTuple_CheckExact(option)) {
        int done = add_part(found, PyLong_FromSsize_t(PyTuple_GET_SIZE(option)));
        for (Py_ssize_t i = 0; done > 0 && i < PyTuple_GET_SIZE(option); i++)
            done = add_option(found, PyTuple_GET_ITEM(option, i));
        return done;
    }
    if (PyFloat_CheckExact(option))
        return add_part(found, PyObject_Repr(option));
    if (!PyLong_CheckExact(option) && !PyBool_Check(option) && !PyUnicode_CheckExact(option)
        && !PyType_CheckExact(option) && !PyObject_TypeCheck(option, dtype_type))
        return 0;
    return add_part(found, Py_NewRef(option));
}

/* The same for all inputs, which must be values that the batch has met, and all options. */
static int
add_operands(Found *found, PyObject *const *args, Py_ssize_t count_, PyObject *values)
{
    for (Py_ssize_t i = 0; i < count_; i++) {
        PyObject *value = Py_IS_TYPE(args[i], Deferred) ? args[i] : known_of(found->batch, args[i]);
        if (value == NULL)
            return PyErr_Occurred() ? -1 : 0;
        PyTuple_SET_ITEM(values, i, Py_NewRef(value));
        if (add_part(found, Py_NewRef(KIND(value))) < 0 || add_input(found, RUN(value)) < 0)
            return -1;
    }
    return 1;
}

static int
add_options(Found *found, PyObject *const *options, Py_ssize_t positional, PyObject *names)
{
    Py_ssize_t total = positional + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    int done = add_part(found, Py_NewRef(names == NULL ? Py_None : names));
    for (Py_ssize_t i = 0; done > 0 && i < total; i++)
        done = add_option(found, options[i]);
    return done;
}

/* sign(batch, values, *options): the signature of a call; borrowed, as the batch keeps it. */
static PyObject *
call_signature(Deferral *deferral, Found *found, PyObject *values, PyObject *const *options, Py_ssize_t positional,
               PyObject *names)
{
    PyObject *key = PyList_AsTuple(found->parts), *calls = SLOT(found->batch, waiting.calls);
    PyObject *signature = key == NULL ? NULL : PyDict_GetItemWithError(calls, key);
    if (key != NULL && signature == NULL && !PyErr_Occurred()) {
        Py_ssize_t total = positional + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
        PyObject **stack = PyMem_New(PyObject *, total + 2);
        if (stack == NULL)
            PyErr_NoMemory();
        else {
            stack[0] = found->batch;
            stack[1] = values;
            memcpy(stack + 2, options, (size_t)total * sizeof(PyObject *));
            signature = PyObject_Vectorcall(deferral->sign, stack, (size_t)positional + 2, names);
            PyMem_Free(stack);
        }
        if (signature != NULL) {
            int failed = PyDict_SetItem(calls, key, signature) < 0;
            Py_DECREF(signature);
            if (failed)
                signature = NULL;
        }
    }
    Py_XDECREF(key);
    return signature;
}

/* An op with options; NULL, without an error, to stand aside. */
static PyObject *
noted_with_options(Deferral *deferral, PyObject *batch, PyObject *const *args, Py_ssize_t positional, PyObject *names)
{
    int taken = deferral->arity < 0 ? 1 : deferral->arity;
    PyObject *const *given = args, *result = NULL, *signature = NULL;
    Py_ssize_t count_ = taken;
    if (deferral->arity < 0) {
        given = PySequence_Fast_ITEMS(args[0]);
        count_ = PySequence_Fast_GET_SIZE(args[0]);
    }
    Found found = {batch, PyList_New(0), PyList_New(0), zero};
    PyObject *values = PyTuple_New(count_);
    int done = found.parts == NULL || found.inputs == NULL || values == NULL
                   ? -1 : add_part(&found, Py_NewRef(deferral->op));
    if (done > 0)
        done = add_part(&found, Py_NewRef(is_idle() ? Py_False : Py_True));
    if (done > 0)
        done = add_operands(&found, given, count_, values);
    if (done > 0)
        done = add_options(&found, args + taken, positional - taken, names);
    if (done > 0)
        signature = call_signature(deferral, &found, values, args + taken, positional - taken, names);
    if (signature != NULL)
        result = value_by(signature, batch, found.depth, found.inputs, PyList_GET_ITEM(found.inputs, 0));
    Py_XDECREF(values);
    Py_XDECREF(found.parts);
    Py_XDECREF(found.inputs);
    is_out_of_the_ordinary(result);
    return result;
}

/* Whether a call can be noted here. Of a sequence the first must be deferred: of any other this is none of the business,
   and the first to look at it. */
static int
is_simple(const Deferral *deferral, PyObject *const *args, Py_ssize_t positional, PyObject *names)
{
    if (deferral->sign == NULL)
        return positional == deferral->arity && names == NULL;
    if (deferral->arity >= 0)
        return positional >= deferral->arity;
    return positional > 0 && (PyTuple_CheckExact(args[0]) || PyList_CheckExact(args[0]))
           && PySequence_Fast_GET_SIZE(args[0]) > 0 && Py_IS_TYPE(PySequence_Fast_GET_ITEM(args[0], 0), Deferred);
}

static PyObject *
call_deferral(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Deferral *deferral = (Deferral *)self;
    Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
    PyObject *batch = batch_of_thread();
    if (batch != NULL && is_simple(deferral, args, positional, names)) {
        Py_INCREF(batch);
        PyObject *result = deferral->sign == NULL ? noted_op(deferral, batch, args)
                                                  : noted_with_options(deferral, batch, args, positional, names);
        Py_DECREF(batch);
        if (result != NULL || PyErr_Occurred())
            return result;
    }
    return PyObject_Vectorcall(deferral->general, args, (size_t)positional, names);
}

static PyObject *
new_deferral(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *words[] = {"op", "general", "arity", "sign", NULL};
    PyObject *op, *general, *sign_ = Py_None;
    int arity;
    if (!PyArg_ParseTupleAndKeywords(args, options, "OOi|O", words, &op, &general, &arity, &sign_))
        return NULL;
    if (arity == 0 || arity < (sign_ == Py_None ? 1 : -1) || arity > MOST_INPUTS) {
        PyErr_Format(PyExc_ValueError, "%d inputs, where 1 to %d can be", arity, MOST_INPUTS);
        return NULL;
    }
    Deferral *deferral = (Deferral *)type->tp_alloc(type, 0);
    if (deferral != NULL) {
        deferral->vectorcall = call_deferral;
        deferral->op = Py_NewRef(op);
        deferral->general = Py_NewRef(general);
        deferral->sign = sign_ == Py_None ? NULL : Py_NewRef(sign_);
        deferral->arity = arity;
    }
    return (PyObject *)deferral;
}

static int
traverse_deferral(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Deferral *)self)->op);
    Py_VISIT(((Deferral *)self)->general);
    Py_VISIT(((Deferral *)self)->sign);
    return 0;
}

static void
free_deferral(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Deferral *)self)->op);
    Py_XDECREF(((Deferral *)self)->general);
    Py_XDECREF(((Deferral *)self)->sign);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
bind_deferral(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(type))
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

PyTypeObject DeferralType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamic._native.Deferral",
    .tp_basicsize = sizeof(Deferral),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Deferral, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = new_deferral,
    .tp_dealloc = free_deferral,
    .tp_traverse = traverse_deferral,
    .tp_descr_get = bind_deferral,
};

/* held(values): those deferred values of a list that others hold, too. */
PyObject *
held(PyObject *Py_UNUSED(module), PyObject *values)
{
    PyObject *kept = PyList_CheckExact(values) ? PyList_New(0) : NULL;
    if (kept == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "held takes a list of values");
    for (Py_ssize_t i = 0; kept != NULL && i < PyList_GET_SIZE(values); i++) {
        PyObject *value = PyList_GET_ITEM(values, i);
        if (Py_REFCNT(value) > 1 && Py_IS_TYPE(value, Deferred) && PyList_Append(kept, value) < 0)
            Py_CLEAR(kept);
    }
    return kept;
}

/* rows(value): value[0], value[1] and so on, which are views of it. */
PyObject *
rows(PyObject *Py_UNUSED(module), PyObject *value)
{
    if (!Py_IS_TYPE(value, Deferred) || PyTuple_GET_SIZE(SHAPE(value)) == 0) {
        PyErr_SetString(PyExc_TypeError, "rows takes a deferred value that has some");
        return NULL;
    }
    PyObject *batch = Py_NewRef(SLOT(level_of(RUN(value)), waiting.batch));
    PyObject *kind = PyObject_CallFunctionObjArgs(row_kind, batch, KIND(value), NULL);
    Py_ssize_t count_ = PyLong_AsSsize_t(PyTuple_GET_ITEM(SHAPE(value), 0));
    PyObject *all = kind == NULL ? NULL : PyList_New(count_);
    Py_ssize_t size = all == NULL ? 0 : PyLong_AsSsize_t(SLOT(kind, waiting.size));
    for (Py_ssize_t i = 0; all != NULL && i < count_; i++) {
        PyObject *row = value_of(view_of(RUN(value), i * size), kind, batch);
        if (row == NULL)
            Py_CLEAR(all);
        else
            PyList_SET_ITEM(all, i, row);
    }
    Py_XDECREF(kind);
    Py_DECREF(batch);
    return all;
}

/* connect_batches(**names): lend what waits, and who knows more of it. */
PyObject *
connect_batches(PyObject *Py_UNUSED(module), PyObject *args, PyObject *options)
{
    static char *words[] = {"deferred", "node", "several", "view", "part", "result", "batch", "signature",
                            "cell_signature", "bundle", "level", "kind", "never", "meet", "sign", "row_kind",
                            NULL};
    PyObject *deferred, *node, *several, *view, *part, *result, *batch, *signature, *cell, *bundle, *level, *kind;
    if (!PyArg_ParseTupleAndKeywords(args, options, "OOOOOOOOOOOOOOOO", words, &deferred, &node, &several, &view,
                                     &part, &result, &batch, &signature, &cell, &bundle, &level, &kind, &never,
                                     &meet, &sign, &row_kind))
        return NULL;
    struct {
        PyObject *type;
        const char *name;
        Py_ssize_t *offset;
    } slots[] = {
        {batch, "known", &waiting.known},                     {batch, "signatures", &waiting.signatures},
        {batch, "values", &waiting.values},                   {batch, "cells", &waiting.cells},
        {batch, "calls", &waiting.calls},
        {signature, "bundle", &waiting.bundle},               {signature, "out", &waiting.out},
        {signature, "view", &waiting.view},                   {signature, "risky", &waiting.risky},
        {cell, "bundle", &waiting.cell_bundle},               {cell, "order", &waiting.order},
        {cell, "results", &waiting.results},                  {cell, "build", &waiting.build},
        {bundle, "levels", &waiting.levels},                  {level, "batch", &waiting.batch},
        {level, "depth", &waiting.depth},                     {level, "nodes", &waiting.nodes},
        {level, "ran", &waiting.ran},                         {node, "level", &waiting.level},
        {node, "signature", &waiting.signature},              {node, "inputs", &waiting.inputs},
        {node, "read", &waiting.read},                        {node, "viewed", &waiting.viewed},
        {node, "block", &waiting.block},                      {node, "start", &waiting.start},
        {several, "blocks", &waiting.blocks},                 {view, "level", &waiting.view_level},
        {view, "node", &waiting.view_node},                   {view, "owner", &waiting.view_owner},
        {view, "offset", &waiting.view_offset},               {part, "level", &waiting.part_level},
        {part, "owner", &waiting.part_owner},                 {part, "index", &waiting.index},
        {part, "size", &waiting.part_size},                   {part, "viewed", &waiting.part_viewed},
        {kind, "shape", &waiting.shape},                      {kind, "size", &waiting.size},
        {kind, "parameter", &waiting.parameter},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(slots); i++)
        if ((*slots[i].offset = offset_of(slots[i].type, slots[i].name)) < 0)
            return NULL;
    PyObject *held[] = {batch, deferred, node, several, view, part, result, never, meet, sign, row_kind};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(held); i++)
        Py_INCREF(held[i]);  /* for as long as the process lives */
    Batch = (PyTypeObject *)batch;
    Deferred = (PyTypeObject *)deferred;
    Node = (PyTypeObject *)node;
    Several = (PyTypeObject *)several;
    View = (PyTypeObject *)view;
    Part = (PyTypeObject *)part;
    Result = (PyTypeObject *)result;
    if ((level_name = PyUnicode_InternFromString("level")) == NULL || (zero = PyLong_FromLong(0)) == NULL)
        return NULL;
    Py_RETURN_NONE;
}
