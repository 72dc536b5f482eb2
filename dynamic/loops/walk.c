/* history and walk: what led to some tensors, and the pass back along it. */

#include "loops.h"

typedef struct {
    long long sequence;
    PyObject *entry;
} Dated;

static int
earlier(const void *x, const void *y)
{
    long long a = ((const Dated *)x)->sequence, b = ((const Dated *)y)->sequence;
    return (a > b) - (a < b);
}

static int
sort_by_sequence(PyObject *entries)
{
    Py_ssize_t size = PyList_GET_SIZE(entries);
    Dated *dated = PyMem_New(Dated, size + 1);
    if (dated == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < size; i++) {
        dated[i].entry = PyList_GET_ITEM(entries, i);
        dated[i].sequence = PyLong_AsLongLong(SLOT(dated[i].entry, at.sequence));
    }
    qsort(dated, (size_t)size, sizeof(Dated), earlier);
    for (Py_ssize_t i = 0; i < size; i++)
        PyList_SET_ITEM(entries, i, dated[i].entry);
    PyMem_Free(dated);
    return PyErr_Occurred() ? -1 : 0;
}

static int
visit(PyObject *edge, PyObject *seen, PyObject *entries, PyObject *leaves)
{
    if (edge == Py_None)
        return 0;
    Py_ssize_t before = PySet_GET_SIZE(seen);
    if (PySet_Add(seen, edge) < 0)
        return -1;
    if (PySet_GET_SIZE(seen) == before)
        return 0;
    return Py_IS_TYPE(edge, Entry) ? PyList_Append(entries, edge) : PySet_Add(leaves, edge);
}

/* history(roots): every entry that led to the roots, the latest last, and every leaf. */
PyObject *
history(PyObject *Py_UNUSED(module), PyObject *roots)
{
    PyObject *entries = PyList_New(0), *leaves = PySet_New(NULL), *seen = PySet_New(NULL), *result = NULL;
    PyObject *first = PySequence_Fast(roots, "history takes edges");
    if (entries == NULL || leaves == NULL || seen == NULL || first == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(first); i++)
        if (visit(PySequence_Fast_GET_ITEM(first, i), seen, entries, leaves) < 0)
            goto done;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries); i++) {  /* which grows meanwhile */
        PyObject *edges = Py_NewRef(SLOT(PyList_GET_ITEM(entries, i), at.edges));
        PyObject *listed = PySequence_Fast(edges, "edges are a sequence");
        int failed = listed == NULL;
        for (Py_ssize_t j = 0; !failed && j < PySequence_Fast_GET_SIZE(listed); j++)
            failed = visit(PySequence_Fast_GET_ITEM(listed, j), seen, entries, leaves);
        Py_XDECREF(listed);
        Py_DECREF(edges);
        if (failed)
            goto done;
    }
    if (sort_by_sequence(entries) == 0)
        result = PyTuple_Pack(2, entries, leaves);
done:
    Py_XDECREF(entries);
    Py_XDECREF(leaves);
    Py_XDECREF(seen);
    Py_XDECREF(first);
    return result;
}

static int
needs_attention(PyObject *entry)
{
    PyObject *latest = SLOT(clock_, at.latest), *hooks = SLOT(entry, at.hooks);
    if (!PyTuple_CheckExact(SLOT(entry, at.saved)) || (hooks != Py_None && PyObject_IsTrue(hooks)))
        return 1;
    return PyLong_AsLongLong(SLOT(entry, at.sequence)) < PyLong_AsLongLong(latest);
}

static int
pass_back(PyObject *apply, PyObject *entry, PyObject *cotangents, PyObject *keep)
{
    if (Py_IS_TYPE(apply, &ProgramType)) {
        int done = run_program(apply, entry, keep == Py_True, cotangents);
        if (done)
            return done < 0 ? -1 : 0;
    }
    PyObject *args[] = {entry, keep, cotangents};
    Py_INCREF(apply);
    PyObject *result = PyObject_Vectorcall(apply, args, 3, NULL);
    Py_DECREF(apply);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static int
reach_leaves(PyObject *reached, PyObject *cotangents, PyObject *hooked)
{
    Py_ssize_t position = 0;
    PyObject *edge, *cotangent;
    while (PyDict_Next(cotangents, &position, &edge, &cotangent)) {
        PyObject *hooks = SLOT(edge, Py_IS_TYPE(edge, Leaf) ? at.leaf_hooks : at.hooks);
        PyObject *both[] = {edge, cotangent}, *value = cotangent;
        if (hooks != Py_None && PyObject_IsTrue(hooks))
            value = PyObject_Vectorcall(hooked, both, 2, NULL);
        if (value == NULL || PyDict_SetItem(reached, edge, value) < 0)
            return -1;
        if (value != cotangent)
            Py_DECREF(value);
    }
    return 0;
}

/* The last of the entries passes its cotangent back, if one has arrived at it. */
static int
visit_last(PyObject *const *args)
{
    PyObject *entries = args[0], *cotangents = args[1], *reached = args[2], *wanted = args[3], *attend = args[5];
    Py_ssize_t last = PyList_GET_SIZE(entries) - 1;
    PyObject *entry = Py_NewRef(PyList_GET_ITEM(entries, last));
    int failed = PySequence_DelItem(entries, last);
    if (!failed && !Py_IS_TYPE(entry, Entry)) {
        PyErr_SetString(PyExc_TypeError, "walk takes entries");
        failed = -1;
    }
    int arrived = failed ? 0 : PyDict_Contains(cotangents, entry);
    if (arrived > 0 && needs_attention(entry)) {
        PyObject *both[] = {entry, cotangents};
        PyObject *done = PyObject_Vectorcall(attend, both, 2, NULL);
        Py_XDECREF(done);
        failed = done == NULL;
    }
    if (arrived > 0 && !failed && PySet_GET_SIZE(wanted) != 0 && PySet_Contains(wanted, entry) > 0)
        failed = PyDict_SetItem(reached, entry, PyDict_GetItem(cotangents, entry));
    if (arrived > 0 && !failed)
        failed = pass_back(PyDict_GET_SIZE(detours) ? args[7] : SLOT(SLOT(entry, at.pullback), at.apply), entry,
                           cotangents, args[4]);
    Py_DECREF(entry);
    return failed || arrived < 0 ? -1 : 0;
}

/* walk(entries, cotangents, reached, wanted, keep, attend, hooked, by_rules): visit the entries, the latest first, and
   put into `reached` the cotangents of the leaves, and of the entries that are wanted. Once somebody observes ops, as a
   hook may begin to, an entry passes its cotangent back by the rules, and the rest is left to Python: False. */
PyObject *
walk(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 8 || !PyList_CheckExact(args[0]) || !PyDict_CheckExact(args[1]) || !PyDict_CheckExact(args[2])
        || !PyAnySet_CheckExact(args[3]) || !PyBool_Check(args[4])) {
        PyErr_SetString(PyExc_TypeError, "walk takes entries, cotangents, reached, wanted, keep and three functions");
        return NULL;
    }
    while (PyList_GET_SIZE(args[0]) != 0) {
        if (PyDict_GET_SIZE(detours) != 0)
            Py_RETURN_FALSE;
        if (visit_last(args) < 0)
            return NULL;
    }
    if (reach_leaves(args[2], args[1], args[6]) < 0)
        return NULL;
    Py_RETURN_TRUE;
}
