/* Deferring: an op noted to run later with others: dynamic/batching/batch.py. */

#include "waiting.h"

PyTypeObject *Batch, *Deferred, *Node, *Several, *View, *Part, *Result;
PyTypeObject *Signature, *CellSignature, *Bundle, *Level, *KindOfValue;
PyObject *never, *meet, *sign, *row_kind, *level_name;
Waiting waiting;

static int
is_batch(PyObject *object)
{
    if (Batch != NULL && PyObject_TypeCheck(object, Batch))
        return 1;
    PyErr_Format(PyExc_TypeError, "a batch, not %s", Py_TYPE(object)->tp_name);
    return 0;
}

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
value_by(PyObject *signature, PyObject *batch, Py_ssize_t depth, PyObject *inputs, PyObject *first)
{
    if (!Py_IS_TYPE(signature, Signature)) {
        PyErr_Format(PyExc_TypeError, "a signature, not %s", Py_TYPE(signature)->tp_name);
        return NULL;
    }
    PyObject *view = slot_of(signature, waiting.view), *out = typed_slot(signature, waiting.out, KindOfValue);
    PyObject *bundle = typed_slot(signature, waiting.bundle, Bundle), *value = NULL;
    if (view == NULL || out == NULL || bundle == NULL)
        return NULL;
    Py_INCREF(out);
    Py_INCREF(bundle);
    if (view != Py_None) {
        Py_ssize_t offset = number_in(signature, waiting.view);
        if (!PyErr_Occurred())
            value = value_of(view_of(first, offset), out, batch);
    }
    else if (SLOT(signature, waiting.risky) == Py_False)
        value = value_of(noted(Node, batch, bundle, depth, signature, inputs), out, batch);
    Py_DECREF(out);
    Py_DECREF(bundle);
    return value;
}

static PyObject *
noted_op(Deferral *deferral, PyObject *batch, PyObject *const *args)  /* NULL, without an error, to stand aside */
{
    int arity = deferral->arity, ready = 1;
    Py_ssize_t depth = 0;
    PyObject *key = PyTuple_New(2 + arity), *inputs = PyTuple_New(arity), *signature = NULL, *result = NULL;
    if (key != NULL && inputs != NULL) {
        PyTuple_SET_ITEM(key, 0, Py_NewRef(deferral->op));
        PyTuple_SET_ITEM(key, 1, Py_NewRef(is_idle() ? Py_False : Py_True));
        for (int i = 0; ready && i < arity; i++) {
            PyObject *value = operand_of(batch, args[i]);
            PyObject *run = value == NULL ? NULL : Py_XNewRef(run_of(value));
            PyTuple_SET_ITEM(inputs, i, run);
            PyTuple_SET_ITEM(key, 2 + i, run == NULL ? NULL : Py_XNewRef(kind_of(value)));
            Py_XDECREF(value);
            ready = PyTuple_GET_ITEM(key, 2 + i) != NULL && (depth = deeper(depth, run)) >= 0;
        }
        PyObject *signatures = ready ? typed_slot(batch, waiting.signatures, &PyDict_Type) : NULL;
        signature = signatures == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(signatures, key));
    }
    if (signature != NULL)
        result = value_by(signature, batch, depth, inputs, PyTuple_GET_ITEM(inputs, 0));
    Py_XDECREF(signature);
    Py_XDECREF(key);
    Py_XDECREF(inputs);
    return result;
}

/* An option as parts of a key that no other has: 1, 1.0 and True are three, and so are 0.0 and -0.0. 0 for what is no
   plain value. */
static int
add_option(Found *found, PyObject *option, int nested)
{
    if (nested > MOST_NESTED)
        return 0;
    if (option == Py_None || option == Py_Ellipsis)
        return add_part(found, Py_NewRef(option));
    if (add_part(found, Py_NewRef(Py_TYPE(option))) < 0)
        return -1;
    if (PySlice_Check(option)) {
        PySliceObject *slice = (PySliceObject *)option;
        int done = add_option(found, slice->start, nested + 1);
        if (done > 0)
            done = add_option(found, slice->stop, nested + 1);
        return done > 0 ? add_option(found, slice->step, nested + 1) : done;
    }
    if (PyTuple_CheckExact(option)) {
        int done = add_part(found, PyLong_FromSsize_t(PyTuple_GET_SIZE(option)));
        for (Py_ssize_t i = 0; done > 0 && i < PyTuple_GET_SIZE(option); i++)
            done = add_option(found, PyTuple_GET_ITEM(option, i), nested + 1);
        return done;
    }
    if (PyFloat_CheckExact(option))
        return add_part(found, PyObject_Repr(option));
    if (!PyLong_CheckExact(option) && !PyBool_Check(option) && !PyUnicode_CheckExact(option)
        && !PyType_CheckExact(option) && !PyObject_TypeCheck(option, &PyArrayDescr_Type))
        return 0;
    return add_part(found, Py_NewRef(option));
}

/* The same for all inputs, which must be values that the batch has met, and all options. */
static int
add_operands(Found *found, PyObject *const *args, Py_ssize_t count_, PyObject *values)
{
    for (Py_ssize_t i = 0; i < count_; i++) {
        PyObject *value = operand_of(found->batch, args[i]);
        if (value == NULL)
            return PyErr_Occurred() ? -1 : 0;
        PyTuple_SET_ITEM(values, i, value);
        if (add_part(found, Py_XNewRef(kind_of(value))) < 0 || add_input(found, run_of(value)) < 0)
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
        done = add_option(found, options[i], 0);
    return done;
}

/* sign(batch, values, *options): the signature of a call, which the batch keeps: a new reference. */
static PyObject *
call_signature(Deferral *deferral, Found *found, PyObject *values, PyObject *const *options, Py_ssize_t positional,
               PyObject *names)
{
    PyObject *calls = Py_XNewRef(typed_slot(found->batch, waiting.calls, &PyDict_Type));
    PyObject *key = calls == NULL ? NULL : PyList_AsTuple(found->parts);
    PyObject *signature = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(calls, key));
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
        if (signature != NULL && PyDict_SetItem(calls, key, signature) < 0)
            Py_CLEAR(signature);
    }
    Py_XDECREF(key);
    Py_XDECREF(calls);
    return signature;
}

/* An op with options; NULL, without an error, to stand aside. */
static PyObject *
noted_with_options(Deferral *deferral, PyObject *batch, PyObject *const *args, Py_ssize_t positional, PyObject *names)
{
    int taken = deferral->arity < 0 ? 1 : deferral->arity;
    PyObject *const *given = args, *result = NULL, *signature = NULL, *sequence = NULL;
    Py_ssize_t count_ = taken;
    if (deferral->arity < 0) {
        if ((sequence = PySequence_Tuple(args[0])) == NULL)
            return NULL;
        given = PySequence_Fast_ITEMS(sequence);
        count_ = PyTuple_GET_SIZE(sequence);
    }
    Found found = {batch, PyList_New(0), PyList_New(0), 0};
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
    Py_XDECREF(signature);
    Py_XDECREF(sequence);
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
    PyObject *shape = Py_IS_TYPE(value, Deferred) ? SHAPE(value) : NULL;
    if (shape == NULL || !PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) == 0) {
        PyErr_SetString(PyExc_TypeError, "rows takes a deferred value that has some");
        return NULL;
    }
    Py_ssize_t count_ = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, 0)), size = 0;
    PyObject *run = Py_XNewRef(run_of(value)), *level = run == NULL ? NULL : level_of(run);
    PyObject *batch = level == NULL ? NULL : Py_XNewRef(slot_of(level, waiting.batch)), *kind = NULL, *all = NULL;
    if (batch != NULL && kind_of(value) != NULL && is_batch(batch))
        kind = PyObject_CallFunctionObjArgs(row_kind, batch, KIND(value), NULL);
    if (kind != NULL && !Py_IS_TYPE(kind, KindOfValue))
        PyErr_Format(PyExc_TypeError, "a kind, not %s", Py_TYPE(kind)->tp_name);
    else if (kind != NULL)
        size = number_in(kind, waiting.size);
    if (!PyErr_Occurred())
        all = PyList_New(count_);
    for (Py_ssize_t i = 0; all != NULL && i < count_; i++) {
        PyObject *row = value_of(view_of(run, i * size), kind, batch);
        if (row == NULL)
            Py_CLEAR(all);
        else
            PyList_SET_ITEM(all, i, row);
    }
    Py_XDECREF(kind);
    Py_XDECREF(batch);
    Py_XDECREF(run);
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
    if (Batch != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "batches are connected already");
        return NULL;
    }
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
    PyObject *held[] = {batch, deferred, node, several, view, part, result, signature, cell, bundle, level, kind,
                        never, meet, sign, row_kind};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(held); i++)
        Py_INCREF(held[i]);  /* for as long as the process lives */
    Batch = (PyTypeObject *)batch;
    Deferred = (PyTypeObject *)deferred;
    Node = (PyTypeObject *)node;
    Several = (PyTypeObject *)several;
    View = (PyTypeObject *)view;
    Part = (PyTypeObject *)part;
    Result = (PyTypeObject *)result;
    Signature = (PyTypeObject *)signature;
    CellSignature = (PyTypeObject *)cell;
    Bundle = (PyTypeObject *)bundle;
    Level = (PyTypeObject *)level;
    KindOfValue = (PyTypeObject *)kind;
    if ((level_name = PyUnicode_InternFromString("level")) == NULL)
        return NULL;
    Py_RETURN_NONE;
}
