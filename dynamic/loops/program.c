/* Program: the pullback of an op as calls of kernels, numbered and in order. */

#include "inputs.h"

/* An instruction calls a kernel, or delivers a value to an input. Values are numbered: first what is saved, then the
   cotangent, then what the calls make. An argument below 0 is a constant. */
typedef struct {
    PyObject *kernel;  /* NULL: deliver `args[0]` to the input `out`, or to a slice of it: that of shape and key */
    PyObject *attrs;   /* or NULL */
    int into;          /* the arguments that may take the result, when nobody reads them any more, as a bit set */
    int count, out, dropped_count;
    int args[MOST_ARGUMENTS], dropped[MOST_ARGUMENTS];
} Instruction;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *otherwise;  /* the rules, for what is no array */
    PyObject *constants;  /* a tuple; with `typed`, each a mapping from the number of a dtype */
    int typed, conforms, widens;
    int saved, values, inputs;
    Py_ssize_t count;
    Instruction *code;
} Program;

/* The sum over the axes that broadcasting added or stretched. */
static int
is_shape(PyObject *shape)
{
    if (!PyTuple_CheckExact(shape))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(shape, i)))
            return 0;
    return 1;
}

static PyObject *
summed_to(PyObject *value, PyObject *shape)
{
    PyObject *axes[MOST_AXES], *args[] = {value, shape};
    int added = is_shape(shape) ? PyArray_NDIM(ARRAY(value)) - (int)PyTuple_GET_SIZE(shape) : -1, count_ = 0;
    if (added < 0 || PyArray_NDIM(ARRAY(value)) > MOST_AXES)
        return PyObject_Vectorcall(unbroadcast, args, 2, NULL);
    for (int i = 0; i < PyArray_NDIM(ARRAY(value)); i++) {
        int overflow;
        if (i < added || (PyLong_AsLongAndOverflow(PyTuple_GET_ITEM(shape, i - added), &overflow) == 1
                          && PyArray_DIM(ARRAY(value), i) != 1))
            axes[count_++] = PyLong_FromLong(i);  /* small ints are there already */
    }
    PyObject *over = PyTuple_New(count_);
    for (int i = 0; i < count_; i++)
        if (over != NULL)
            PyTuple_SET_ITEM(over, i, axes[i]);
    args[1] = over;
    int half = PyArray_TYPE(ARRAY(value)) == NPY_HALF;  /* summed in float32 */
    PyObject *reducer = PyArray_SIZE(ARRAY(value)) < many && !half ? reduce : summed;  /* as that would choose itself */
    PyObject *sum = over == NULL ? NULL : as_array(PyObject_Vectorcall(reducer, args, 2, NULL));
    Py_XDECREF(over);
    if (sum != NULL && !has_shape(sum, shape))
        Py_SETREF(sum, PyObject_CallMethod(sum, "reshape", "(O)", shape));
    return sum;
}

static int
conform(PyObject **value, PyObject *edge)  /* summed over what broadcasting added, and cast back */
{
    int leaf = Py_IS_TYPE(edge, Leaf);
    PyObject *dtype = slot_of(edge, leaf ? at.leaf_dtype : at.dtype);
    PyObject *shape = dtype == NULL ? NULL : slot_of(edge, leaf ? at.leaf_shape : at.shape);
    if (shape == NULL)
        return -1;
    Py_INCREF(dtype);
    Py_INCREF(shape);
    *value = as_array(*value);
    if (*value != NULL && dtype_of(*value) != dtype) {
        PyObject *args[] = {*value, dtype};
        Py_SETREF(*value, made(PyObject_Vectorcall(cast, args, 2, NULL)));
    }
    if (*value != NULL && !has_shape(*value, shape))
        Py_SETREF(*value, made(summed_to(*value, shape)));
    Py_DECREF(dtype);
    Py_DECREF(shape);
    return *value == NULL ? -1 : 0;
}

static int
widen(PyObject **values, int count_)  /* float16 to float32, as `wider` in graphs/ops/movement.py; whether there was any */
{
    int found = 0;
    for (int i = 0; i < count_; i++) {
        if (!IS_ARRAY(values[i]) || PyArray_TYPE(ARRAY(values[i])) != NPY_HALF)
            continue;
        PyObject *args[] = {values[i], (PyObject *)PyArray_DescrFromType(NPY_FLOAT)};
        Py_SETREF(values[i], made(PyObject_Vectorcall(cast, args, 2, NULL)));
        Py_DECREF(args[1]);
        if (values[i] == NULL)
            return -1;
        found = 1;
    }
    return found;
}

static PyObject *
total(PyObject *const *args)  /* into the first of them where it may be written over */
{
    if (is_ours(args[0]) && IS_ARRAY(args[1]) && PyArray_NDIM(ARRAY(args[0])) == PyArray_NDIM(ARRAY(args[1]))
        && fits_into(args[1], args[0]))
        return call_into(add, args, 2, args[0]);
    return PyObject_Vectorcall(add, args, 2, NULL);
}

static int
arrive(PyObject *cotangents, PyObject *edge, PyObject *value)  /* add a contribution; takes the reference */
{
    PyObject *held = PyDict_GetItemWithError(cotangents, edge);
    if (held != NULL) {
        Py_INCREF(held);
        int failed = PyDict_DelItem(cotangents, edge);
        PyObject *args[] = {held, value};
        PyObject *sum = failed ? NULL : made(total(args));
        Py_DECREF(held);
        Py_SETREF(value, sum);
    }
    if (value == NULL || PyErr_Occurred()) {
        Py_XDECREF(value);
        return -1;
    }
    int failed = PyDict_SetItem(cotangents, edge, value);
    Py_DECREF(value);
    return failed;
}

/* An array with a value added at a key; takes the reference to it, and writes into it where there is no other. */
static PyObject *
added_at(PyObject *held, PyObject *key, PyObject *value)
{
    if (Py_REFCNT(held) != 1 || PyArray_BASE(ARRAY(held)) != NULL || !PyArray_ISWRITEABLE(ARRAY(held)))
        Py_SETREF(held, made(PyArray_NewCopy(ARRAY(held), NPY_KEEPORDER)));
    PyObject *slice = held == NULL ? NULL : PyObject_GetItem(held, key), *args[] = {slice, value};
    PyObject *sum = slice == NULL ? NULL : call_into(add, args, 2, slice);
    if (sum == NULL)
        Py_CLEAR(held);
    Py_XDECREF(slice);
    Py_XDECREF(sum);
    return held;
}

/* The key and then an Ellipsis, with which it selects an array even where that is one element. */
static PyObject *
with_ellipsis(PyObject *key)
{
    PyObject *last = PyTuple_Pack(1, Py_Ellipsis), *longer = last == NULL ? NULL : PySequence_Concat(key, last);
    Py_XDECREF(last);
    return longer;
}

/* Add what reaches a slice of an input, in place, so that T slices do not cost T wholes; takes the reference to `value`. */
static int
arrive_at_slice(PyObject *cotangents, PyObject *edge, PyObject *value, PyObject *shape, PyObject *key)
{
    PyObject *held = PyDict_GetItemWithError(cotangents, edge), *longer, *whole = NULL;
    if (held != NULL && IS_ARRAY(held) && dtype_of(held) == dtype_of(value)) {
        Py_INCREF(held);
        longer = with_ellipsis(key);
        if (longer != NULL && PyDict_DelItem(cotangents, edge) == 0)
            whole = added_at(held, longer, value);
        else
            Py_DECREF(held);
        Py_XDECREF(longer);
    }
    else if (!PyErr_Occurred()) {
        PyObject *args[] = {value, shape, key};
        whole = made(PyObject_Vectorcall(place, args, 1, shape_and_key));
    }
    Py_DECREF(value);
    return whole == NULL ? -1 : arrive(cotangents, edge, whole);
}

/* The argument that takes the result of a kernel: one that is not read again and may be written over, best one that was
   made here; -1 where there is none. */
static int
dying_argument(const Instruction *step, PyObject *entry, PyObject *const *values)
{
    int best = -1;
    for (int i = 0; i < step->count; i++) {
        int value = step->args[i], dropped = 0;
        for (int j = 0; j < step->dropped_count; j++)
            dropped |= step->dropped[j] == value;
        if (value < 0 || !dropped || !(step->into >> i & 1) || (best >= 0 && step->args[best] >= value))
            continue;
        if (is_ours(values[value]) && has_shape(values[value], SLOT(entry, at.shape))
            && dtype_of(values[value]) == SLOT(entry, at.dtype))
            best = i;
    }
    return best;
}

static PyObject *
run_step(const Instruction *step, PyObject *const *args, PyObject *entry, PyObject *const *values)
{
    int dying = step->into != 0 && reuse_from != PY_SSIZE_T_MAX ? dying_argument(step, entry, values) : -1;
    if (dying >= 0)
        return call_into(step->kernel, args, step->count, args[dying]);
    return call_kernel(step->kernel, args, step->count, step->attrs);
}

/* Take a value, with the shape and the key of the slice that it is of, if so, to an input. */
static int
deliver(int conforms, const Instruction *step, PyObject **values, PyObject *edges, PyObject *cotangents)
{
    PyObject *edge = PyTuple_GET_ITEM(edges, step->out), *taken[MOST_ARGUMENTS] = {NULL};
    for (int i = 0; i < step->count; i++)
        taken[i] = Py_NewRef(values[step->args[i]]);
    for (int i = 0; i < step->dropped_count; i++)
        Py_CLEAR(values[step->dropped[i]]);
    int failed = edge == Py_None || !is_edge(edge);
    if (failed)
        PyErr_Format(PyExc_TypeError, "an entry or a leaf, not a %s", Py_TYPE(edge)->tp_name);
    else
        failed = conforms && conform(&taken[0], edge) < 0;
    if (failed)
        Py_XDECREF(taken[0]);
    else if (step->count == 1)
        failed = arrive(cotangents, edge, taken[0]);
    else
        failed = arrive_at_slice(cotangents, edge, taken[0], taken[1], taken[2]);
    for (int i = 1; i < step->count; i++)
        Py_DECREF(taken[i]);
    return failed ? -1 : 0;
}

static int
execute(int conforms, const Instruction *step, PyObject *entry, PyObject **values, PyObject *const *constants,
        PyObject *edges, PyObject *cotangents)
{
    if (step->kernel == NULL)
        return deliver(conforms, step, values, edges, cotangents);
    PyObject *args[MOST_ARGUMENTS];
    for (int i = 0; i < step->count; i++)
        args[i] = step->args[i] < 0 ? constants[-1 - step->args[i]] : values[step->args[i]];
    PyObject *out = made(run_step(step, args, entry, values));
    for (int i = 0; i < step->dropped_count; i++)
        Py_CLEAR(values[step->dropped[i]]);
    values[step->out] = out;
    return out == NULL ? -1 : 0;
}

static int
load_constants(const Program *program, PyObject *cotangent, PyObject **constants)  /* references, or NULL */
{
    Py_ssize_t count_ = PyTuple_GET_SIZE(program->constants);
    PyObject *dtype = program->typed && count_ != 0 ? dtype_number(cotangent) : NULL;
    for (Py_ssize_t i = 0; i < count_ && !PyErr_Occurred(); i++) {
        PyObject *constant = PyTuple_GET_ITEM(program->constants, i);
        constants[i] = program->typed ? PyObject_GetItem(constant, dtype) : Py_NewRef(constant);
    }
    Py_XDECREF(dtype);
    return PyErr_Occurred() ? -1 : 0;
}

/* Carry the cotangent of an entry to its inputs: 1 when done, 0 when Python has to, -1 with an error set. */
int
run_program(PyObject *self, PyObject *entry, int keep, PyObject *cotangents)
{
    const Program *program = (Program *)self;
    PyObject *values[MOST_VALUES] = {NULL}, *constants[MOST_ARGUMENTS * 4] = {NULL};
    PyObject *saved = SLOT(entry, at.saved), *edges = SLOT(entry, at.edges), *cotangent;
    if (saved == NULL || !PyTuple_CheckExact(saved) || PyTuple_GET_SIZE(saved) != program->saved || edges == NULL
        || !PyTuple_CheckExact(edges) || PyTuple_GET_SIZE(edges) != program->inputs)
        return 0;
    cotangent = PyDict_GetItemWithError(cotangents, entry);
    if (cotangent == NULL || !IS_ARRAY(cotangent))
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(edges);
    for (int i = 0; i < program->saved; i++)
        values[i] = Py_NewRef(PyTuple_GET_ITEM(saved, i));
    values[program->saved] = Py_NewRef(cotangent);
    int widened = program->widens ? widen(values, program->saved + 1) : 0;
    int failed = widened < 0 || load_constants(program, values[program->saved], constants) < 0
                 || PyDict_DelItem(cotangents, entry) < 0;
    if (!failed && !keep) {
        put(entry, at.saved, Py_NewRef(Py_None));
        put(entry, at.edges, PyTuple_New(0));
    }
    for (Py_ssize_t i = 0; !failed && i < program->count; i++)
        failed = execute(program->conforms || widened, &program->code[i], entry, values, constants, edges, cotangents);
    for (int i = 0; i < program->values; i++)
        Py_XDECREF(values[i]);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(program->constants); i++)
        Py_XDECREF(constants[i]);
    Py_DECREF(edges);
    return failed ? -1 : 1;
}

static PyObject *
call_program(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Program *program = (Program *)self;
    if (PyVectorcall_NARGS(nargsf) != 3 || names != NULL || !Py_IS_TYPE(args[0], Entry)
        || !PyDict_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "a program takes an entry, whether to keep it, and the cotangents");
        return NULL;
    }
    int keep = PyObject_IsTrue(args[1]), done = keep < 0 ? -1 : run_program(self, args[0], keep, args[2]);
    if (done < 0)
        return NULL;
    return done ? Py_NewRef(Py_None) : PyObject_Vectorcall(program->otherwise, args, 3, NULL);
}

/* Numbers of values and, below 0, of constants. */
static int
read_numbers(PyObject *tuple, int *numbers_, int *count_, Py_ssize_t constants)
{
    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "not a tuple of numbers");
        return -1;
    }
    if (PyTuple_GET_SIZE(tuple) > MOST_ARGUMENTS) {
        PyErr_Format(PyExc_ValueError, "not a tuple of at most %d numbers", MOST_ARGUMENTS);
        return -1;
    }
    *count_ = (int)PyTuple_GET_SIZE(tuple);
    for (int i = 0; i < *count_; i++) {
        long number = PyLong_AsLong(PyTuple_GET_ITEM(tuple, i));
        if (PyErr_Occurred())
            return -1;
        if (number < -constants || number >= MOST_VALUES) {
            PyErr_SetString(PyExc_ValueError, "no such value");
            return -1;
        }
        numbers_[i] = (int)number;
    }
    return 0;
}

/* Refuse an instruction that reads what is not there, or makes what is: `there` are the values so far, as a bit set. */
static int
check_instruction(const Instruction *step, uint64_t *there, int values, int inputs)
{
    int delivers = step->kernel == NULL, fine = delivers ? step->count == 1 || step->count == 3 : step->count > 0;
    for (int i = 0; fine && i < step->count; i++)
        fine = step->args[i] < 0 ? !delivers : *there >> step->args[i] & 1;
    for (int i = 0; fine && i < step->dropped_count; i++) {
        fine = step->dropped[i] >= 0 && *there >> step->dropped[i] & 1;
        if (fine)
            *there &= ~((uint64_t)1 << step->dropped[i]);
    }
    if (fine && delivers)
        fine = step->out >= 0 && step->out < inputs;
    else if (fine) {
        fine = step->out >= 0 && step->out < values && !(*there >> step->out & 1);
        if (fine)
            *there |= (uint64_t)1 << step->out;
    }
    if (!fine)
        PyErr_SetString(PyExc_ValueError, "an instruction reads what is not there, or makes what is");
    return fine ? 0 : -1;
}

static int
read_instruction(Instruction *step, PyObject *tuple, Py_ssize_t constants)
{
    PyObject *kernel, *args, *attrs, *dropped;
    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "an instruction is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(tuple, "OOOiOi", &kernel, &args, &attrs, &step->out, &dropped, &step->into)
        || read_numbers(args, step->args, &step->count, constants) < 0
        || read_numbers(dropped, step->dropped, &step->dropped_count, 0) < 0)
        return -1;
    if (attrs != Py_None && !PyDict_Check(attrs)) {
        PyErr_SetString(PyExc_TypeError, "the attributes of a call are a dict");
        return -1;
    }
    step->kernel = kernel == Py_None ? NULL : Py_NewRef(kernel);
    step->attrs = attrs == Py_None ? NULL : Py_NewRef(attrs);
    return 0;
}

static PyObject *
new_program(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *words[] = {"otherwise", "constants", "typed", "conforms", "widens", "saved", "values", "inputs",
                            "code", NULL};
    PyObject *otherwise, *constants, *code;
    int typed, conforms, widens, saved, values, inputs;
    if (!PyArg_ParseTupleAndKeywords(args, options, "OO!pppiiiO!", words, &otherwise, &PyTuple_Type, &constants, &typed,
                                     &conforms, &widens, &saved, &values, &inputs, &PyTuple_Type, &code))
        return NULL;
    if (values > MOST_VALUES || saved < 0 || saved >= values || PyTuple_GET_SIZE(constants) > MOST_ARGUMENTS * 4) {
        PyErr_Format(PyExc_ValueError, "%d values, where at most %d can be", values, MOST_VALUES);
        return NULL;
    }
    Program *program = (Program *)type->tp_alloc(type, 0);
    if (program == NULL)
        return NULL;
    program->vectorcall = call_program;
    program->otherwise = Py_NewRef(otherwise);
    program->constants = Py_NewRef(constants);
    program->typed = typed;
    program->conforms = conforms;
    program->widens = widens;
    program->saved = saved;
    program->values = values;
    program->inputs = inputs;
    program->code = PyMem_Calloc((size_t)PyTuple_GET_SIZE(code) + 1, sizeof(Instruction));
    uint64_t there = ((uint64_t)2 << saved) - 1;  /* what is saved, and the cotangent */
    for (Py_ssize_t i = 0; program->code != NULL && i < PyTuple_GET_SIZE(code); i++) {
        program->count = i + 1;
        if (read_instruction(&program->code[i], PyTuple_GET_ITEM(code, i), PyTuple_GET_SIZE(constants)) < 0
            || check_instruction(&program->code[i], &there, values, inputs) < 0)
            break;
    }
    if (program->code == NULL || PyErr_Occurred()) {
        Py_DECREF(program);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)program;
}

static int
traverse_program(PyObject *self, visitproc visit, void *arg)
{
    Program *program = (Program *)self;
    Py_VISIT(program->otherwise);
    Py_VISIT(program->constants);
    return 0;
}

static void
free_program(PyObject *self)
{
    Program *program = (Program *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(program->otherwise);
    Py_XDECREF(program->constants);
    for (Py_ssize_t i = 0; i < program->count; i++) {
        Py_XDECREF(program->code[i].kernel);
        Py_XDECREF(program->code[i].attrs);
    }
    PyMem_Free(program->code);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject ProgramType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamic._native.Program",
    .tp_doc = PyDoc_STR("A pullback as kernel calls: program(entry, keep, cotangents)."),
    .tp_basicsize = sizeof(Program),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Program, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = new_program,
    .tp_dealloc = free_program,
    .tp_traverse = traverse_program,
};
