/* Groups: where in memory their inputs and results lie: dynamic/batching/memory.py, layout.py, schedule.py. */

#include "waiting.h"

static int
is_node(PyObject *object)
{
    if (Py_IS_TYPE(object, Node) || Py_IS_TYPE(object, Several))
        return 1;
    PyErr_Format(PyExc_TypeError, "a node, not %s", Py_TYPE(object)->tp_name);
    return 0;
}

static int
is_run(PyObject *object)
{
    return Py_IS_TYPE(object, View) || Py_IS_TYPE(object, Part) || is_node(object);
}

/* The inputs of a node, as a sequence of runs. */
static PyObject *
inputs_of(PyObject *node)
{
    PyObject *inputs = is_node(node) ? SLOT(node, waiting.inputs) : NULL;
    if (inputs != NULL && PyTuple_CheckExact(inputs))
        Py_INCREF(inputs);
    else if (inputs != NULL)
        inputs = PySequence_Fast(inputs, "inputs are a sequence");
    for (Py_ssize_t i = 0; inputs != NULL && i < PySequence_Fast_GET_SIZE(inputs); i++)
        if (!is_run(PySequence_Fast_GET_ITEM(inputs, i)))
            Py_CLEAR(inputs);
    return inputs;
}

/* The node that computes a run; borrowed. */
static PyObject *
owner_of(PyObject *run)
{
    return Py_IS_TYPE(run, View) ? SLOT(run, waiting.view_owner)
           : Py_IS_TYPE(run, Part) ? SLOT(run, waiting.part_owner) : run;
}

/* The block that a run is in, borrowed, and from which element on: `run.block` and `run.start`. */
static PyObject *
block_of(PyObject *run, Py_ssize_t *start)
{
    Py_ssize_t offset = 0, index;
    if (!is_run(run))
        return NULL;
    if (Py_IS_TYPE(run, View)) {
        offset = PyLong_AsSsize_t(SLOT(run, waiting.view_offset));
        run = SLOT(run, waiting.view_node);
    }
    PyObject *node = owner_of(run), *block = NULL;
    if (SLOT(node, waiting.start) != NULL) {
        *start = PyLong_AsSsize_t(SLOT(node, waiting.start));
        if (!Py_IS_TYPE(run, Part))
            block = SLOT(node, waiting.block);
        else if (SLOT(node, waiting.blocks) != NULL) {
            index = PyLong_AsSsize_t(SLOT(run, waiting.index));
            *start *= PyLong_AsSsize_t(SLOT(run, waiting.part_size));
            block = PyList_GetItem(SLOT(node, waiting.blocks), index);
        }
        *start += offset;
    }
    if (block == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_AttributeError, "a value that has not been computed yet is nowhere");
    return block;
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
    if (!PyList_CheckExact(runs)) {
        PyErr_SetString(PyExc_TypeError, "located takes a list of runs");
        return NULL;
    }
    Py_ssize_t count_ = PyList_GET_SIZE(runs), width = count_ * (Py_ssize_t)sizeof(Py_ssize_t);
    PyObject *blocks = PyList_New(0), *numbers = PyDict_New(), *last = NULL, *result = NULL;
    PyObject *owners = PyBytes_FromStringAndSize(NULL, width), *starts = PyBytes_FromStringAndSize(NULL, width);
    Py_ssize_t number = -1, failed = blocks == NULL || numbers == NULL || owners == NULL || starts == NULL;
    for (Py_ssize_t i = 0; !failed && i < count_; i++) {
        PyObject *block = block_of(PyList_GET_ITEM(runs, i), (Py_ssize_t *)PyBytes_AS_STRING(starts) + i);
        if (block != NULL && block != last)
            number = number_of(block, numbers, blocks);
        failed = block == NULL || number < 0;
        last = block;
        ((Py_ssize_t *)PyBytes_AS_STRING(owners))[i] = number;
    }
    if (!failed)
        result = PyTuple_Pack(3, blocks, owners, starts);
    Py_XDECREF(blocks);
    Py_XDECREF(numbers);
    Py_XDECREF(owners);
    Py_XDECREF(starts);
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
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(runs); i++) {
        Py_ssize_t start, size = size_at(sizes, i);
        PyObject *block = size == -1 && PyErr_Occurred() ? NULL : block_of(PyList_GET_ITEM(runs, i), &start);
        if (block != NULL && block != last)
            number = number_of(block, numbers, blocks);
        if (block == NULL || number < 0)
            return -2;
        last = block;
        if (count_ && found[count_ - 1].number == number
            && found[count_ - 1].start + found[count_ - 1].length == start)
            found[count_ - 1].length += size;
        else {
            found[count_++] = (Span){number, start, size};
            if (count_ > 2 * PyList_GET_SIZE(blocks) + most)
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
    if (count_ != 3 || !PyList_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "spans takes a list of runs, their sizes and a number");
        return NULL;
    }
    Py_ssize_t most = PyLong_AsSsize_t(args[2]), filled = -2;
    if (most == -1 && PyErr_Occurred())
        return NULL;
    PyObject *blocks = PyList_New(0), *numbers = PyDict_New(), *list = NULL, *result = NULL;
    Span *found = PyMem_New(Span, PyList_GET_SIZE(args[0]) + 1);
    if (found == NULL)
        PyErr_NoMemory();
    else if (blocks != NULL && numbers != NULL)
        filled = fill_spans(found, args[0], args[1], most, numbers, blocks);
    if (filled == -1)
        result = Py_NewRef(Py_None);
    else if (filled >= 0 && (list = list_of(found, filled)) != NULL)
        result = PyTuple_Pack(2, blocks, list);
    PyMem_Free(found);
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
        if (found == NULL)
            return NULL;
        if (found != block || other != start)
            Py_RETURN_FALSE;
    }
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
    PyObject *runs = PyList_New(PyList_GET_SIZE(args[0]));
    for (Py_ssize_t i = 0; runs != NULL && i < PyList_GET_SIZE(args[0]); i++) {
        PyObject *fast = inputs_of(PyList_GET_ITEM(args[0], i));
        if (fast != NULL && j < PySequence_Fast_GET_SIZE(fast))
            PyList_SET_ITEM(runs, i, Py_NewRef(PySequence_Fast_GET_ITEM(fast, j)));
        else {
            if (fast != NULL)
                PyErr_SetString(PyExc_IndexError, "a node has fewer inputs");
            Py_CLEAR(runs);
        }
        Py_XDECREF(fast);
    }
    return runs;
}

/* let_go(nodes): of what they have read. */
PyObject *
let_go_of_inputs(PyObject *Py_UNUSED(module), PyObject *nodes)
{
    PyObject *none = PyList_CheckExact(nodes) ? PyTuple_New(0) : NULL;
    if (none == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "let_go takes a list of nodes");
    for (Py_ssize_t i = 0; none != NULL && i < PyList_GET_SIZE(nodes); i++) {
        if (is_node(PyList_GET_ITEM(nodes, i)))
            put(PyList_GET_ITEM(nodes, i), waiting.inputs, Py_NewRef(none));
        else
            Py_CLEAR(none);
    }
    Py_XDECREF(none);
    return none == NULL ? NULL : Py_NewRef(Py_None);
}

/* A node, when it is read first, and where it stands. */
typedef struct {
    long long read;
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
        readers[i] = (Reader){PyLong_AsLongLong(SLOT(node, waiting.read)), i, node};
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
note_reads(PyObject *group, long long place)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(group); i++) {
        PyObject *fast = inputs_of(PyList_GET_ITEM(group, i));
        for (Py_ssize_t j = 0; fast != NULL && j < PySequence_Fast_GET_SIZE(fast); j++) {
            PyObject *number = PyLong_FromLongLong(place++);
            if (number == NULL)
                Py_CLEAR(fast);
            else
                put(owner_of(PySequence_Fast_GET_ITEM(fast, j)), waiting.read, number);
        }
        if (fast == NULL)
            return -1;
        Py_DECREF(fast);
    }
    return 0;
}

static int
are_lists(PyObject *groups)
{
    int good = PyList_CheckExact(groups);
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(groups); i++)
        good = PyList_CheckExact(PyList_GET_ITEM(groups, i));
    if (!good)
        PyErr_SetString(PyExc_TypeError, "groups are a list of lists of nodes");
    return good;
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
    if (PyErr_Occurred() || !are_lists(args[0]))
        return NULL;
    for (Py_ssize_t number = PyList_GET_SIZE(args[0]) - 1; number >= 0; number--) {
        PyObject *group = PyList_GET_ITEM(args[0], number);
        if (sort_by_read(group) < 0 || note_reads(group, number * places) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* awaited(nodes): the levels of what they read that have not run. */
PyObject *
awaited(PyObject *Py_UNUSED(module), PyObject *nodes)
{
    PyObject *levels = PyList_CheckExact(nodes) ? PySet_New(NULL) : NULL, *last = NULL;
    if (levels == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "awaited takes a list of nodes");
    for (Py_ssize_t i = 0; levels != NULL && i < PyList_GET_SIZE(nodes); i++) {
        PyObject *fast = inputs_of(PyList_GET_ITEM(nodes, i));
        for (Py_ssize_t j = 0; fast != NULL && j < PySequence_Fast_GET_SIZE(fast); j++) {
            PyObject *level = SLOT(owner_of(PySequence_Fast_GET_ITEM(fast, j)), waiting.level);
            if (level != last && SLOT(level, waiting.ran) != Py_True && PySet_Add(levels, level) < 0)
                Py_CLEAR(fast);
            last = level;
        }
        if (fast == NULL)
            Py_CLEAR(levels);
        Py_XDECREF(fast);
    }
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
    PyObject *starts = PySequence_Fast(args[2], "starts are a sequence");
    if (starts != NULL && PySequence_Fast_GET_SIZE(starts) != PyList_GET_SIZE(args[0])) {
        PyErr_SetString(PyExc_ValueError, "each node has one start");
        Py_CLEAR(starts);
    }
    for (Py_ssize_t i = 0; starts != NULL && i < PyList_GET_SIZE(args[0]); i++) {
        PyObject *node = PyList_GET_ITEM(args[0], i);
        if (!is_node(node)) {
            Py_CLEAR(starts);
            break;
        }
        put(node, waiting.block, Py_NewRef(args[1]));
        put(node, waiting.start, Py_NewRef(PySequence_Fast_GET_ITEM(starts, i)));
    }
    if (starts == NULL)
        return NULL;
    Py_DECREF(starts);
    Py_RETURN_NONE;
}
