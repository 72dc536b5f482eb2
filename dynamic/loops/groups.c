/* Groups: where in memory their inputs and results lie: dynamic/batching/memory.py, layout.py, schedule.py. */

#include "waiting.h"

/* A list as it is now, whatever happens to it while it is gone through: a new reference. */
static PyObject *
as_it_is(PyObject *list, const char *otherwise)
{
    if (PyList_CheckExact(list))
        return PyList_AsTuple(list);
    PyErr_SetString(PyExc_TypeError, otherwise);
    return NULL;
}

/* The inputs of a node, as a tuple of runs. */
static PyObject *
inputs_of(PyObject *node)
{
    PyObject *given = is_node(node) ? slot_of(node, waiting.inputs) : NULL;
    PyObject *inputs = given == NULL ? NULL : PySequence_Tuple(given);
    for (Py_ssize_t i = 0; inputs != NULL && i < PyTuple_GET_SIZE(inputs); i++)
        if (!is_run(PyTuple_GET_ITEM(inputs, i)))
            Py_CLEAR(inputs);
    return inputs;
}

/* The node that computes a run; borrowed. */
static PyObject *
owner_of(PyObject *run)
{
    PyObject *owner = Py_IS_TYPE(run, View)   ? slot_of(run, waiting.view_owner)
                      : Py_IS_TYPE(run, Part) ? slot_of(run, waiting.part_owner)
                                              : run;
    return is_node(owner) ? owner : NULL;
}

/* The block of a part, borrowed: that of all results of its number. */
static PyObject *
block_of_part(PyObject *part, PyObject *node, Py_ssize_t *start)
{
    if (!Py_IS_TYPE(node, Several)) {
        PyErr_Format(PyExc_TypeError, "a node of several results, not %s", Py_TYPE(node)->tp_name);
        return NULL;
    }
    Py_ssize_t index = number_in(part, waiting.index), size = number_in(part, waiting.part_size);
    PyObject *blocks = PyErr_Occurred() ? NULL : typed_slot(node, waiting.blocks, &PyList_Type);
    *start = (Py_ssize_t)((size_t)*start * (size_t)size);
    return blocks == NULL ? NULL : PyList_GetItem(blocks, index);
}

/* The block that a run is in, a new reference, and from which element on: `run.block` and `run.start`. */
static PyObject *
block_of(PyObject *run, Py_ssize_t *start)
{
    Py_ssize_t offset = 0;
    if (!is_run(run))
        return NULL;
    if (Py_IS_TYPE(run, View)) {
        offset = number_in(run, waiting.view_offset);
        run = slot_of(run, waiting.view_node);
        if (PyErr_Occurred() || !is_run(run))
            return NULL;
    }
    PyObject *node = owner_of(run), *block = NULL;
    if (node == NULL)
        return NULL;
    if (SLOT(node, waiting.start) != NULL) {
        *start = number_in(node, waiting.start);
        block = PyErr_Occurred()          ? NULL
                : Py_IS_TYPE(run, Part) ? block_of_part(run, node, start)
                                        : SLOT(node, waiting.block);
        *start = (Py_ssize_t)((size_t)*start + (size_t)offset);
    }
    if (block == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_AttributeError, "a value that has not been computed yet is nowhere");
    return Py_XNewRef(block);
}

/* The number of a block among those met, which are given theirs in the order in which they are met; -1 for an error. */
static Py_ssize_t
number_of(PyObject *block, PyObject *numbers, PyObject *blocks)
{
    PyObject *number = PyDict_GetItemWithError(numbers, block);
    if (number != NULL)
        return PyLong_AsSsize_t(number);
    Py_ssize_t next = PyList_GET_SIZE(blocks);
    if (PyErr_Occurred() || (number = PyLong_FromSsize_t(next)) == NULL)
        return -1;
    int failed = PyDict_SetItem(numbers, block, number) < 0 || PyList_Append(blocks, block) < 0;
    Py_DECREF(number);
    return failed ? -1 : next;
}

/* located(runs): the blocks that they are in, for each run the number of its block, and from which element on it is;
   numbers as the bytes of arrays. */
PyObject *
located(PyObject *Py_UNUSED(module), PyObject *runs)
{
    if ((runs = as_it_is(runs, "located takes a list of runs")) == NULL)
        return NULL;
    Py_ssize_t count_ = PyTuple_GET_SIZE(runs), width = count_ * (Py_ssize_t)sizeof(Py_ssize_t);
    PyObject *blocks = PyList_New(0), *numbers = PyDict_New(), *last = NULL, *result = NULL;
    PyObject *owners = PyBytes_FromStringAndSize(NULL, width), *starts = PyBytes_FromStringAndSize(NULL, width);
    Py_ssize_t number = -1, failed = blocks == NULL || numbers == NULL || owners == NULL || starts == NULL;
    for (Py_ssize_t i = 0; !failed && i < count_; i++) {
        PyObject *block = block_of(PyTuple_GET_ITEM(runs, i), (Py_ssize_t *)PyBytes_AS_STRING(starts) + i);
        if (block != NULL && block != last)
            number = number_of(block, numbers, blocks);
        failed = block == NULL || number < 0;
        last = block;  /* the list holds it */
        Py_XDECREF(block);
        ((Py_ssize_t *)PyBytes_AS_STRING(owners))[i] = number;
    }
    if (!failed)
        result = PyTuple_Pack(3, blocks, owners, starts);
    Py_XDECREF(blocks);
    Py_XDECREF(numbers);
    Py_XDECREF(owners);
    Py_XDECREF(starts);
    Py_DECREF(runs);
    return result;
}

/* Elements of a block, by its number. */
typedef struct {
    Py_ssize_t number, start, length;
} Span;

static PyObject *
list_of(const Span *spans_, Py_ssize_t count_)
{
    PyObject *list = PyList_New(count_);
    for (Py_ssize_t i = 0; list != NULL && i < count_; i++) {
        PyObject *span = Py_BuildValue("nnn", spans_[i].number, spans_[i].start, spans_[i].length);
        if (span == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, span);
    }
    return list;
}

/* The size of the run of this number, of which all have the same, or each its own; -1 for an error. */
static Py_ssize_t
size_at(PyObject *sizes, Py_ssize_t i)
{
    PyObject *size = PyList_CheckExact(sizes) ? PyList_GetItem(sizes, i) : sizes;
    return size == NULL ? -1 : PyLong_AsSsize_t(size);
}

/* Fill in the spans of some runs: how many there are, -1 where they are too many, -2 for an error. */
static Py_ssize_t
fill_spans(Span *found, PyObject *runs, PyObject *sizes, Py_ssize_t most, PyObject *numbers, PyObject *blocks)
{
    Py_ssize_t count_ = 0, number = -1;
    PyObject *last = NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(runs); i++) {
        Py_ssize_t start, size = size_at(sizes, i);
        PyObject *block = size == -1 && PyErr_Occurred() ? NULL : block_of(PyTuple_GET_ITEM(runs, i), &start);
        if (block != NULL && block != last)
            number = number_of(block, numbers, blocks);
        Py_XDECREF(block);  /* the list holds it */
        if (block == NULL || number < 0)
            return -2;
        last = block;
        if (count_ && found[count_ - 1].number == number
            && (size_t)found[count_ - 1].start + (size_t)found[count_ - 1].length == (size_t)start)
            found[count_ - 1].length = (Py_ssize_t)((size_t)found[count_ - 1].length + (size_t)size);
        else {
            found[count_++] = (Span){number, start, size};
            if (count_ - most > 2 * PyList_GET_SIZE(blocks))
                return -1;
        }
    }
    return count_;
}

/* spans(runs, sizes, most): the blocks that they are in, and the elements of these that they are together: for each
   stretch the number of its block, where it begins and how long it is. None if there are more stretches than two for
   each block, and `most`. */
PyObject *
spans(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    const char *otherwise = "spans takes a list of runs, their sizes and a number from 0 on";
    Py_ssize_t most = count_ == 3 ? PyLong_AsSsize_t(args[2]) : -1, filled = -2;
    if (most < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, otherwise);
        return NULL;
    }
    PyObject *runs = as_it_is(args[0], otherwise);
    if (runs == NULL)
        return NULL;
    PyObject *blocks = PyList_New(0), *numbers = PyDict_New(), *list = NULL, *result = NULL;
    Span *found = PyMem_New(Span, PyTuple_GET_SIZE(runs) + 1);
    if (found == NULL)
        PyErr_NoMemory();
    else if (blocks != NULL && numbers != NULL)
        filled = fill_spans(found, runs, args[1], most, numbers, blocks);
    if (filled == -1)
        result = Py_NewRef(Py_None);
    else if (filled >= 0 && (list = list_of(found, filled)) != NULL)
        result = PyTuple_Pack(2, blocks, list);
    PyMem_Free(found);
    Py_DECREF(runs);
    Py_XDECREF(blocks);
    Py_XDECREF(numbers);
    Py_XDECREF(list);
    return result;
}

/* are_one(runs): whether all are the same elements. */
PyObject *
are_one(PyObject *Py_UNUSED(module), PyObject *runs)
{
    if (!PyList_CheckExact(runs) || PyList_GET_SIZE(runs) == 0) {
        PyErr_SetString(PyExc_TypeError, "are_one takes a list of runs");
        return NULL;
    }
    PyObject *first = PyList_GET_ITEM(runs, 0);
    Py_ssize_t start, other;
    PyObject *block = block_of(first, &start);
    for (Py_ssize_t i = 1; block != NULL && i < PyList_GET_SIZE(runs); i++) {
        if (PyList_GET_ITEM(runs, i) == first)
            continue;
        PyObject *found = block_of(PyList_GET_ITEM(runs, i), &other);
        int same = found == block && other == start;
        Py_XDECREF(found);
        if (!same) {
            Py_DECREF(block);
            return found == NULL ? NULL : Py_NewRef(Py_False);
        }
    }
    Py_XDECREF(block);
    return block == NULL ? NULL : Py_NewRef(Py_True);
}

/* column(group, j): what each node of a group reads as input j. */
PyObject *
column(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    Py_ssize_t j = count_ == 2 && PyList_CheckExact(args[0]) ? PyLong_AsSsize_t(args[1]) : -1;
    if (j < 0) {
        PyErr_SetString(PyExc_TypeError, "column takes a list of nodes and the number of an input");
        return NULL;
    }
    PyObject *nodes = PyList_AsTuple(args[0]);
    PyObject *runs = nodes == NULL ? NULL : PyList_New(PyTuple_GET_SIZE(nodes));
    for (Py_ssize_t i = 0; runs != NULL && i < PyTuple_GET_SIZE(nodes); i++) {
        PyObject *fast = inputs_of(PyTuple_GET_ITEM(nodes, i));
        if (fast != NULL && j < PyTuple_GET_SIZE(fast))
            PyList_SET_ITEM(runs, i, Py_NewRef(PyTuple_GET_ITEM(fast, j)));
        else {
            if (fast != NULL)
                PyErr_SetString(PyExc_IndexError, "a node has fewer inputs");
            Py_CLEAR(runs);
        }
        Py_XDECREF(fast);
    }
    Py_XDECREF(nodes);
    return runs;
}

/* let_go(nodes): of what they have read. */
PyObject *
let_go_of_inputs(PyObject *Py_UNUSED(module), PyObject *nodes)
{
    PyObject *all = as_it_is(nodes, "let_go takes a list of nodes"), *none = all == NULL ? NULL : PyTuple_New(0);
    for (Py_ssize_t i = 0; none != NULL && i < PyTuple_GET_SIZE(all); i++) {
        if (is_node(PyTuple_GET_ITEM(all, i)))
            put(PyTuple_GET_ITEM(all, i), waiting.inputs, Py_NewRef(none));
        else
            Py_CLEAR(none);
    }
    Py_XDECREF(all);
    Py_XDECREF(none);
    return none == NULL ? NULL : Py_NewRef(Py_None);
}

/* A node, when it is read first, and where it stands. */
typedef struct {
    Py_ssize_t read;
    Py_ssize_t place;
    PyObject *node;
} Reader;

static int
sooner(const void *x, const void *y)
{
    const Reader *a = x, *b = y;
    if (a->read != b->read)
        return a->read > b->read ? 1 : -1;
    return (a->place > b->place) - (a->place < b->place);
}

static int
sort_by_read(PyObject *group)
{
    Py_ssize_t size = PyList_GET_SIZE(group);
    Reader *readers = PyMem_New(Reader, size + 1);
    if (readers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int is_sorted = 1;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *node = PyList_GET_ITEM(group, i);
        if (!is_node(node))
            break;
        readers[i] = (Reader){number_in(node, waiting.read), i, node};
        is_sorted &= i == 0 || readers[i - 1].read <= readers[i].read;
    }
    int failed = PyErr_Occurred() != NULL;
    if (!failed && !is_sorted)
        qsort(readers, (size_t)size, sizeof(Reader), sooner);
    for (Py_ssize_t i = 0; !failed && i < size; i++)
        PyList_SET_ITEM(group, i, readers[i].node);
    PyMem_Free(readers);
    return failed ? -1 : 0;
}

static int
note_reads(PyObject *nodes, unsigned long long place)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(nodes); i++) {
        PyObject *fast = inputs_of(PyTuple_GET_ITEM(nodes, i));
        for (Py_ssize_t j = 0; fast != NULL && j < PyTuple_GET_SIZE(fast); j++) {
            PyObject *number = PyLong_FromLongLong((long long)place++);
            PyObject *owner = number == NULL ? NULL : owner_of(PyTuple_GET_ITEM(fast, j));
            if (owner != NULL)
                put(owner, waiting.read, number);
            else {
                Py_XDECREF(number);
                Py_CLEAR(fast);
            }
        }
        if (fast == NULL)
            return -1;
        Py_DECREF(fast);
    }
    return 0;
}

/* Order one group, and note when its nodes read what they read, from a place on. */
static int
arrange_group(PyObject *group, unsigned long long place)
{
    const char *otherwise = "groups are a list of lists of nodes";
    if (!PyList_CheckExact(group)) {
        PyErr_SetString(PyExc_TypeError, otherwise);
        return -1;
    }
    PyObject *nodes = sort_by_read(group) < 0 ? NULL : as_it_is(group, otherwise);
    int failed = nodes == NULL ? -1 : note_reads(nodes, place);
    Py_XDECREF(nodes);
    return failed;
}

/* arrange(groups, places): order the nodes of each group by who reads them first; `places` are more than the inputs of
   any. */
PyObject *
arrange(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 2) {
        PyErr_SetString(PyExc_TypeError, "arrange takes groups and a number");
        return NULL;
    }
    long long places = PyLong_AsLongLong(args[1]);
    PyObject *groups = PyErr_Occurred() ? NULL : as_it_is(args[0], "groups are a list of lists of nodes");
    int failed = groups == NULL;
    for (Py_ssize_t number = failed ? -1 : PyTuple_GET_SIZE(groups) - 1; !failed && number >= 0; number--)
        failed = arrange_group(PyTuple_GET_ITEM(groups, number),
                               (unsigned long long)number * (unsigned long long)places) < 0;
    Py_XDECREF(groups);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* awaited(nodes): the levels of what they read that have not run. */
PyObject *
awaited(PyObject *Py_UNUSED(module), PyObject *nodes)
{
    PyObject *all = as_it_is(nodes, "awaited takes a list of nodes"), *last = NULL;
    PyObject *levels = all == NULL ? NULL : PySet_New(NULL);
    for (Py_ssize_t i = 0; levels != NULL && i < PyTuple_GET_SIZE(all); i++) {
        PyObject *fast = inputs_of(PyTuple_GET_ITEM(all, i));
        for (Py_ssize_t j = 0; fast != NULL && j < PyTuple_GET_SIZE(fast); j++) {
            PyObject *owner = owner_of(PyTuple_GET_ITEM(fast, j));
            PyObject *level = owner == NULL ? NULL : typed_slot(owner, waiting.level, Level);
            if (level == NULL
                || (level != last && SLOT(level, waiting.ran) != Py_True && PySet_Add(levels, level) < 0))
                Py_CLEAR(fast);
            last = level;
        }
        if (fast == NULL)
            Py_CLEAR(levels);
        Py_XDECREF(fast);
    }
    Py_XDECREF(all);
    return levels;
}

/* place(group, block, starts): tell the nodes of a group where in a block they lie. */
PyObject *
place(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 3 || !PyList_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "place takes a list of nodes, a block and where they start in it");
        return NULL;
    }
    PyObject *starts = PySequence_Tuple(args[2]), *nodes = starts == NULL ? NULL : PyList_AsTuple(args[0]);
    int good = nodes != NULL && PyTuple_GET_SIZE(starts) == PyTuple_GET_SIZE(nodes);
    if (nodes != NULL && !good)
        PyErr_SetString(PyExc_ValueError, "each node has one start");
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(nodes); i++)
        if ((good = is_node(PyTuple_GET_ITEM(nodes, i)))) {
            put(PyTuple_GET_ITEM(nodes, i), waiting.block, Py_NewRef(args[1]));
            put(PyTuple_GET_ITEM(nodes, i), waiting.start, Py_NewRef(PyTuple_GET_ITEM(starts, i)));
        }
    Py_XDECREF(starts);
    Py_XDECREF(nodes);
    return good ? Py_NewRef(Py_None) : NULL;
}
