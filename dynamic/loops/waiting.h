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
extern PyTypeObject *Signature, *CellSignature, *Bundle, *Level, *KindOfValue;
extern PyObject *never, *meet, *sign, *row_kind; /* what `connect_batches` was lent */
extern PyObject *level_name;

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

/* Whether something is a node, or a run of the elements of one; an error is set where it is not. */
static inline int
is_node(PyObject *object)
{
    if (object != NULL && (Py_IS_TYPE(object, Node) || Py_IS_TYPE(object, Several)))
        return 1;
    if (object != NULL)
        PyErr_Format(PyExc_TypeError, "a node, not %s", Py_TYPE(object)->tp_name);
    return 0;
}

static inline int
is_run(PyObject *object)
{
    return object != NULL && (Py_IS_TYPE(object, View) || Py_IS_TYPE(object, Part) || is_node(object));
}

static inline PyObject *
run_of(PyObject *value)  /* of a deferred value; borrowed, NULL with an error set */
{
    PyObject *run = slot_of(value, at.data);
    return is_run(run) ? run : NULL;
}

static inline PyObject *
kind_of(PyObject *value)  /* in the same way */
{
    return typed_slot(value, at.edge, KindOfValue);
}

static inline PyObject *
level_of(PyObject *run)  /* in the same way */
{
    if (!is_run(run))
        return NULL;
    return typed_slot(run,
                      Py_IS_TYPE(run, View)   ? waiting.view_level
                      : Py_IS_TYPE(run, Part) ? waiting.part_level
                                              : waiting.level,
                      Level);
}

/* deferred(run, kind, batch.values) */
static inline PyObject *
value_of(PyObject *run, PyObject *kind, PyObject *batch)  /* takes the reference to the run */
{
    PyObject *shape = run == NULL ? NULL : typed_slot(kind, waiting.shape, &PyTuple_Type);
    PyObject *values = shape == NULL ? NULL : typed_slot(batch, waiting.values, &PyList_Type);
    PyObject *value = values == NULL ? NULL : Deferred->tp_alloc(Deferred, 0);
    if (value == NULL) {
        Py_XDECREF(run);
        return NULL;
    }
    RUN(value) = run;
    KIND(value) = Py_NewRef(kind);
    SHAPE(value) = Py_NewRef(shape);
    if (PyList_Append(values, value) < 0)
        Py_CLEAR(value);
    return value;
}

/* View(run, offset) */
static inline PyObject *
view_of(PyObject *run, Py_ssize_t offset)
{
    PyObject *node = run;
    if (Py_IS_TYPE(run, View)) {
        node = slot_of(run, waiting.view_node);
        offset += number_in(run, waiting.view_offset);
    }
    if (PyErr_Occurred() || !(Py_IS_TYPE(node, Part) || is_node(node)))
        return NULL;
    int is_part = Py_IS_TYPE(node, Part);
    PyObject *owner = is_part ? slot_of(node, waiting.part_owner) : node, *level = level_of(node);
    PyObject *view = owner == NULL || level == NULL ? NULL : View->tp_alloc(View, 0);
    if (view == NULL)
        return NULL;
    SLOT(view, waiting.view_node) = Py_NewRef(node);
    SLOT(view, waiting.view_owner) = Py_NewRef(owner);
    SLOT(view, waiting.view_offset) = PyLong_FromSsize_t(offset);
    SLOT(view, waiting.view_level) = Py_NewRef(level);
    put(SLOT(view, waiting.view_node), is_part ? waiting.part_viewed : waiting.viewed, Py_NewRef(Py_True));
    if (PyErr_Occurred())
        Py_CLEAR(view);
    return view;
}

/* A new node among those of its bundle and depth, whose inputs come from no deeper. */
static inline PyObject *
level_at(PyObject *batch, PyObject *bundle, Py_ssize_t depth)  /* a new reference */
{
    PyObject *levels = typed_slot(bundle, waiting.levels, &PyDict_Type);
    PyObject *number = levels == NULL ? NULL : PyLong_FromSsize_t(depth);
    PyObject *level = number == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(levels, number));
    if (level == NULL && !PyErr_Occurred())
        level = PyObject_CallMethodObjArgs(batch, level_name, bundle, number, NULL);
    if (level != NULL && !Py_IS_TYPE(level, Level)) {
        PyErr_Format(PyExc_TypeError, "a level, not %s", Py_TYPE(level)->tp_name);
        Py_CLEAR(level);
    }
    Py_XDECREF(number);
    return level;
}

static inline PyObject *
noted(PyTypeObject *type, PyObject *batch, PyObject *bundle, Py_ssize_t depth, PyObject *signature, PyObject *inputs)
{
    PyObject *level = level_at(batch, bundle, depth);
    PyObject *nodes = level == NULL ? NULL : typed_slot(level, waiting.nodes, &PyList_Type);
    PyObject *node = nodes == NULL ? NULL : type->tp_alloc(type, 0);
    if (node != NULL) {
        SLOT(node, waiting.level) = Py_NewRef(level);
        SLOT(node, waiting.signature) = Py_NewRef(signature);
        SLOT(node, waiting.inputs) = Py_NewRef(inputs);
        SLOT(node, waiting.read) = Py_NewRef(never);
        if (PyList_Append(nodes, node) < 0)
            Py_CLEAR(node);
    }
    Py_XDECREF(level);
    return node;
}

static inline Py_ssize_t
deeper(Py_ssize_t depth, PyObject *run)  /* the depth of a run, if that is more; -1 with an error set */
{
    PyObject *level = level_of(run);
    Py_ssize_t other = level == NULL ? -1 : number_in(level, waiting.depth);
    return PyErr_Occurred() ? -1 : Py_MAX(depth, other);
}

/* The value that stands for a tensor or an array which the batch has met: a new reference, or NULL. */
static inline PyObject *
known_of(PyObject *batch, PyObject *arg)
{
    if (!Py_IS_TYPE(arg, Tensor) && !IS_ARRAY(arg))
        return NULL;
    PyObject *known = typed_slot(batch, waiting.known, &PyDict_Type);
    PyObject *key = known == NULL ? NULL : PyLong_FromVoidPtr(arg);
    PyObject *found = key == NULL ? NULL : PyDict_GetItemWithError(known, key);
    Py_XDECREF(key);
    return found != NULL && Py_IS_TYPE(found, Deferred) ? Py_NewRef(found) : NULL;
}

static inline PyObject *
operand_of(PyObject *batch, PyObject *arg)  /* in the same way, also of a deferred value itself */
{
    return Py_IS_TYPE(arg, Deferred) ? Py_NewRef(arg) : known_of(batch, arg);
}

/* What is found of a call: the parts of its key, the runs that it reads, and how deep these are. */
typedef struct {
    PyObject *batch, *parts, *inputs;
    Py_ssize_t depth;
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
    found->depth = run == NULL ? -1 : deeper(found->depth, run);
    return found->depth < 0 || PyList_Append(found->inputs, run) < 0 ? -1 : 1;
}

#endif
