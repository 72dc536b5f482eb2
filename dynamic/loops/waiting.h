/* What waits in a batch: runs of elements that nodes will make, noted by batch.c and cells.c and run by groups.c. */

#ifndef GRAPHDUEL_WAITING_H
#define GRAPHDUEL_WAITING_H

#include "inputs.h"

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(hidden)
#endif

/* Where the slots of what waits in a batch lie. */
typedef struct {
    Py_ssize_t known, signatures, calls, values, cells;                      /* of a Batch */
    Py_ssize_t bundle, out, view, risky;                                     /* of a Signature */
    Py_ssize_t cell_bundle, order, results, build;                           /* of that of a cell */
    Py_ssize_t levels;                                                       /* of a Bundle */
    Py_ssize_t batch, depth, nodes, ran;                                     /* of a Level */
    Py_ssize_t level, signature, inputs, read, viewed, block, start, blocks; /* of a Node */
    Py_ssize_t view_level, view_node, view_owner, view_offset;               /* of a View */
    Py_ssize_t part_level, part_owner, index, part_size, part_viewed;        /* of a Part */
    Py_ssize_t shape, size, parameter;                                       /* of a Kind */
} Waiting;

extern Waiting waiting;
extern PyTypeObject *Batch, *Deferred, *Node, *Several, *View, *Part, *Result;
extern PyObject *never, *meet, *sign, *row_kind; /* what `connect_batches` was lent */
extern PyObject *level_name, *zero;

/* batch.c */
extern PyTypeObject DeferralType;
PyObject *held(PyObject *module, PyObject *values);
PyObject *rows(PyObject *module, PyObject *value);
PyObject *connect_batches(PyObject *module, PyObject *args, PyObject *options);

/* cells.c */
PyObject *defer_call(PyObject *module, PyObject *const *args, Py_ssize_t count_);

/* groups.c */
PyObject *located(PyObject *module, PyObject *runs);
PyObject *spans(PyObject *module, PyObject *const *args, Py_ssize_t count_);
PyObject *are_one(PyObject *module, PyObject *runs);
PyObject *column(PyObject *module, PyObject *const *args, Py_ssize_t count_);
PyObject *let_go_of_inputs(PyObject *module, PyObject *nodes);
PyObject *arrange(PyObject *module, PyObject *const *args, Py_ssize_t count_);
PyObject *awaited(PyObject *module, PyObject *nodes);
PyObject *place(PyObject *module, PyObject *const *args, Py_ssize_t count_);

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif

/* A deferred value keeps these where a tensor has its data, edge and gradient. */
#define RUN(value) SLOT(value, at.data)
#define KIND(value) SLOT(value, at.edge)
#define SHAPE(value) SLOT(value, at.grad)

static inline PyObject *
level_of(PyObject *run)
{
    return SLOT(run, Py_IS_TYPE(run, View)   ? waiting.view_level
                     : Py_IS_TYPE(run, Part) ? waiting.part_level
                                             : waiting.level);
}

/* deferred(run, kind, batch.values) */
static inline PyObject *
value_of(PyObject *run, PyObject *kind, PyObject *batch)  /* takes the reference to the run */
{
    PyObject *value = run == NULL ? NULL : Deferred->tp_alloc(Deferred, 0);
    if (value == NULL) {
        Py_XDECREF(run);
        return NULL;
    }
    RUN(value) = run;
    KIND(value) = Py_NewRef(kind);
    SHAPE(value) = Py_NewRef(SLOT(kind, waiting.shape));
    if (PyList_Append(SLOT(batch, waiting.values), value) < 0)
        Py_CLEAR(value);
    return value;
}

/* View(run, offset) */
static inline PyObject *
view_of(PyObject *run, Py_ssize_t offset)
{
    PyObject *view = View->tp_alloc(View, 0), *node = run;
    if (view == NULL)
        return NULL;
    if (Py_IS_TYPE(run, View)) {
        node = SLOT(run, waiting.view_node);
        offset += PyLong_AsSsize_t(SLOT(run, waiting.view_offset));
    }
    int is_part = Py_IS_TYPE(node, Part);
    SLOT(view, waiting.view_node) = Py_NewRef(node);
    SLOT(view, waiting.view_owner) = Py_NewRef(is_part ? SLOT(node, waiting.part_owner) : node);
    SLOT(view, waiting.view_offset) = PyLong_FromSsize_t(offset);
    SLOT(view, waiting.view_level) = Py_NewRef(level_of(node));
    put(node, is_part ? waiting.part_viewed : waiting.viewed, Py_NewRef(Py_True));
    if (PyErr_Occurred())
        Py_CLEAR(view);
    return view;
}

/* A new node among those of its bundle and depth, whose inputs come from no deeper. */
static inline PyObject *
noted(PyTypeObject *type, PyObject *batch, PyObject *bundle, PyObject *depth, PyObject *signature, PyObject *inputs)
{
    PyObject *level = PyDict_GetItemWithError(SLOT(bundle, waiting.levels), depth);
    if (level == NULL && PyErr_Occurred())
        return NULL;
    level = level != NULL ? Py_NewRef(level) : PyObject_CallMethodObjArgs(batch, level_name, bundle, depth, NULL);
    PyObject *node = level == NULL ? NULL : type->tp_alloc(type, 0);
    if (node != NULL) {
        SLOT(node, waiting.level) = Py_NewRef(level);
        SLOT(node, waiting.signature) = Py_NewRef(signature);
        SLOT(node, waiting.inputs) = Py_NewRef(inputs);
        SLOT(node, waiting.read) = Py_NewRef(never);
        if (PyList_Append(SLOT(level, waiting.nodes), node) < 0)
            Py_CLEAR(node);
    }
    Py_XDECREF(level);
    return node;
}

static inline PyObject *
deeper(PyObject *depth, PyObject *run)  /* the depth of a run, if that is more; borrowed */
{
    PyObject *other = SLOT(level_of(run), waiting.depth);
    return PyLong_AsLong(other) > PyLong_AsLong(depth) ? other : depth;
}

/* The value that stands for a tensor or an array which the batch has met, or NULL; borrowed. */
static inline PyObject *
known_of(PyObject *batch, PyObject *arg)
{
    if (!Py_IS_TYPE(arg, Tensor) && !Py_IS_TYPE(arg, ndarray))
        return NULL;
    PyObject *key = PyLong_FromVoidPtr(arg);
    PyObject *found = key == NULL ? NULL : PyDict_GetItemWithError(SLOT(batch, waiting.known), key);
    Py_XDECREF(key);
    return found;
}

/* What is found of a call: the parts of its key, the runs that it reads, and how deep these are. */
typedef struct {
    PyObject *batch, *parts, *inputs, *depth;
} Found;

static inline int
add_part(Found *found, PyObject *part)  /* takes the reference */
{
    int failed = part == NULL || PyList_Append(found->parts, part) < 0;
    Py_XDECREF(part);
    return failed ? -1 : 1;
}

static inline int
add_input(Found *found, PyObject *run)
{
    found->depth = deeper(found->depth, run);
    return PyList_Append(found->inputs, run) < 0 ? -1 : 1;
}

#endif
