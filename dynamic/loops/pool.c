/* Pool: memory for NumPy's arrays that is used again, as an allocator that NumPy asks (NEP 49, "Data allocation
   strategies"). An array remembers who gave its memory and hands it back when it dies, so that memory is free when nobody
   can see it any more, and never before. All of this happens while the interpreter's lock is held. */

#include "loops.h"

#define LINE 64         /* bytes of a cache line: a kernel whose vectors straddle two lines takes up to twice as long */
#define SLACK 0.2       /* the share of the peak that may be memory which was not in use */
#define CLASSES 1024    /* sixteen for each power of two */
#define ADAPTED_TO (((size_t)1 << 25) - ((size_t)1 << 16)) /* bytes of the largest block that glibc adapts to */
#define DOMAIN 389047   /* as tracemalloc knows NumPy's data */

/* A piece of memory; this stands right before the array's data. */
typedef struct Block {
    struct Block *older, *newer; /* among the free ones of its size class */
    void *start;
    size_t size;   /* of it all */
    size_t nbytes; /* of the array over it */
    size_t use;    /* of the pool that counts it; 0: nobody does */
} Block;

#define HEAD (sizeof(Block) + LINE - 1)

typedef struct {
    Block *oldest, *newest;
    size_t bytes;
} FreeList;

/* `use` numbers the times that the pool was on, and is 0 while it is off: what is left of an earlier time is nobody's.
   `held` are bytes of all blocks, of which `kept` are free; `in_use` those of the arrays over the others. */
typedef struct {
    PyDataMem_Handler handler;
    PyObject *before;  /* the capsule of who serves once it has been left; NULL where it serves nobody */
    size_t threshold, limit, uses, use;
    size_t in_use, held, kept, peak, peak_in_use, fresh;
    FreeList free[CLASSES];
} Pool;

static const char *const CAPSULE = "mem_handler";
static PyDataMem_Handler *numpys; /* the allocator that there is without us, who gives us memory */

THREAD_LOCAL Py_ssize_t reuse_from = PY_SSIZE_T_MAX;

static int
highest_bit(size_t number)
{
    int bit = 0;
    for (int half = sizeof(size_t) * 4; half; half /= 2)
        if (number >> half) {
            number >>= half;
            bit += half;
        }
    return bit;
}

/* The bytes of the smallest size class that holds so many. */
static size_t
size_class(size_t nbytes)
{
    int bit = highest_bit(nbytes);
    size_t step = (size_t)1 << (bit > 4 ? bit - 4 : 0);
    return (nbytes + step - 1) & ~(step - 1);
}

static FreeList *
list_of(Pool *pool, size_t size)  /* of a size class */
{
    int bit = highest_bit(size);
    return &pool->free[bit * 16 + (int)(size >> (bit > 4 ? bit - 4 : 0) & 15)];
}

static void *
data_of(Block *block)
{
    return block + 1;
}

static Block *
block_of(void *data)
{
    return (Block *)data - 1;
}

/* Blocks ----------------------------------------------------------------------------------------------------------- */

static Block *
fresh_block(size_t size, int zeroed)  /* NULL where there is no memory */
{
    void *ctx = numpys->allocator.ctx;
    char *start = zeroed ? numpys->allocator.calloc(ctx, 1, size) : numpys->allocator.malloc(ctx, size);
    if (start == NULL)
        return NULL;
    uintptr_t data = ((uintptr_t)start + HEAD) / LINE * LINE;
    Block *block = block_of((void *)data);
    block->start = start;
    block->size = size;
    return block;
}

static void
free_block(Block *block)
{
    numpys->allocator.free(numpys->allocator.ctx, block->start, block->size);
}

static Block *
taken(Pool *pool, FreeList *list)  /* the newest of a list */
{
    Block *block = list->newest;
    list->newest = block->older;
    *(block->older == NULL ? &list->oldest : &block->older->newer) = NULL;
    list->bytes -= block->size;
    pool->kept -= block->size;
    return block;
}

static Block *
given_up(Pool *pool, FreeList *list)  /* the oldest of a list */
{
    Block *block = list->oldest;
    list->oldest = block->newer;
    *(block->newer == NULL ? &list->newest : &block->newer->older) = NULL;
    list->bytes -= block->size;
    pool->kept -= block->size;
    pool->held -= block->size;
    PyTraceMalloc_Untrack(DOMAIN, (uintptr_t)data_of(block));
    return block;
}

static void
keep(Pool *pool, Block *block)
{
    FreeList *list = list_of(pool, block->size);
    block->older = list->newest;
    block->newer = NULL;
    *(list->newest == NULL ? &list->oldest : &list->newest->newer) = block;
    list->newest = block;
    list->bytes += block->size;
    pool->kept += block->size;
    PyTraceMalloc_Track(DOMAIN, (uintptr_t)data_of(block), block->size);  /* who measures memory is to see it */
}

/* Give free memory up, the longest unused of the size that takes most, until so many bytes are left. */
static void
trim(Pool *pool, double most)
{
    while (pool->kept != 0 && (double)pool->kept > most) {
        FreeList *largest = pool->free;
        for (FreeList *list = pool->free; list < pool->free + CLASSES; list++)
            if (list->bytes > largest->bytes)
                largest = list;
        free_block(given_up(pool, largest));
    }
}

/* A free block that is larger than the size class and wastes little; NULL where there is none. */
static Block *
larger_block(Pool *pool, size_t nbytes, size_t size)
{
    double wasted = (double)pool->held - (double)pool->kept - (double)pool->in_use;
    double most = (double)nbytes + (double)pool->peak_in_use * SLACK / 2 - wasted;
    if (pool->kept == 0 || most <= (double)size)
        return NULL;
    for (FreeList *list = list_of(pool, size), *last = list_of(pool, (size_t)most); list <= last; list++)
        if (list->newest != NULL && (double)list->newest->size <= most)
            return taken(pool, list);
    return NULL;
}

/* Fresh memory, for which free blocks make room where the peak would hold too much that is not in use. */
static Block *
added_block(Pool *pool, size_t nbytes, size_t size, int zeroed)
{
    double in_use = (double)Py_MAX(pool->peak_in_use, pool->in_use + nbytes);
    trim(pool, in_use / (1 - SLACK) - (double)size - (double)(pool->held - pool->kept));
    Block *block = fresh_block(size, zeroed);
    if (block == NULL && pool->kept != 0) {
        trim(pool, 0);
        block = fresh_block(size, zeroed);
    }
    if (block == NULL)
        return NULL;
    pool->fresh++;
    pool->held += size;
    pool->peak = Py_MAX(pool->peak, pool->held);
    return block;
}

/* What NumPy calls ------------------------------------------------------------------------------------------------- */

static void *
memory_for(Pool *pool, size_t nbytes, int zeroed)
{
    Block *block;
    if (nbytes > (size_t)PY_SSIZE_T_MAX - HEAD)
        return NULL;
    if (pool->use == 0 || nbytes < pool->threshold) {
        if ((block = fresh_block(nbytes + HEAD, zeroed)) == NULL)
            return NULL;
        block->use = 0;
    }
    else {
        size_t size = size_class(nbytes + HEAD);
        FreeList *list = list_of(pool, size);
        block = list->newest != NULL ? taken(pool, list) : larger_block(pool, nbytes, size);
        if (block != NULL && zeroed)
            memset(data_of(block), 0, nbytes);
        if (block == NULL && (block = added_block(pool, nbytes, size, zeroed)) == NULL)
            return NULL;
        block->use = pool->use;
        pool->in_use += nbytes;
        pool->peak_in_use = Py_MAX(pool->peak_in_use, pool->in_use);
    }
    block->nbytes = nbytes;
    return data_of(block);
}

static void *
pool_malloc(void *pool, size_t nbytes)
{
    return memory_for(pool, nbytes, 0);
}

static void *
pool_calloc(void *pool, size_t count_, size_t nbytes)
{
    return nbytes != 0 && count_ > PY_SSIZE_T_MAX / nbytes ? NULL : memory_for(pool, count_ * nbytes, 1);
}

static void
pool_free(void *ctx, void *memory, size_t Py_UNUSED(nbytes))
{
    Pool *pool = ctx;
    if (memory == NULL)  /* NumPy may, as one may of `free` */
        return;
    Block *block = block_of(memory);
    if (block->use == 0 || block->use != pool->use) {
        free_block(block);
        return;
    }
    pool->in_use -= block->nbytes;
    keep(pool, block);
    trim(pool, (double)pool->limit);
}

static void *
pool_realloc(void *pool, void *memory, size_t nbytes)
{
    void *moved = memory_for(pool, nbytes, 0);
    if (moved != NULL && memory != NULL) {
        memcpy(moved, memory, Py_MIN(nbytes, block_of(memory)->nbytes));
        pool_free(pool, memory, 0);
    }
    return moved;
}

/* What Python calls ------------------------------------------------------------------------------------------------ */

static PyDataMem_Handler *
handler_in(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

static Pool *
pool_in(PyObject *capsule)  /* a handler is the first that a pool holds */
{
    PyDataMem_Handler *handler = handler_in(capsule);
    if (handler != NULL && handler->allocator.malloc == pool_malloc)
        return (Pool *)handler;
    if (handler != NULL)
        PyErr_SetString(PyExc_ValueError, "this handler of memory is no pool");
    return NULL;
}

static void
turn_off(Pool *pool)  /* what is in use belongs from now on to whoever sees it */
{
    trim(pool, 0);
    pool->use = pool->held = pool->in_use = 0;
}

static void
forget_pool(PyObject *capsule)
{
    Pool *pool = pool_in(capsule);
    turn_off(pool);
    Py_XDECREF(pool->before);  /* of a thread that ended within its block */
    PyMem_Free(pool);
}

int
find_allocator(void)  /* the one that there is when the module is imported; its capsule is held from then on */
{
    PyObject *current = PyDataMem_GetHandler();
    numpys = current == NULL ? NULL : handler_in(current);
    if (numpys != NULL && numpys->version != 1)
        PyErr_SetString(PyExc_ImportError, "this NumPy has another kind of allocator than known here");
    return PyErr_Occurred() ? -1 : 0;
}

/* Let the C library keep the pages that a step frees for the next. glibc does so up to twice the largest block that it has
   given back to the system, but no more than 64 MB ("dynamic mmap threshold", mallopt(3)); one untouched block of the
   size that counts most sets that. Without it a step faults the same pages in again and again. */
void
keep_pages(void)
{
    PyMem_RawFree(PyMem_RawMalloc(ADAPTED_TO));
}

/* pool(threshold, limit): one that is off, for `enter_pool`. */
PyObject *
new_pool(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t threshold, limit;
    if (!PyArg_ParseTuple(args, "nn", &threshold, &limit))
        return NULL;
    if (threshold < 0 || limit < 0) {
        PyErr_SetString(PyExc_ValueError, "a pool's threshold and limit are bytes, 0 or more");
        return NULL;
    }
    Pool *pool = PyMem_Calloc(1, sizeof(Pool));
    if (pool == NULL)
        return PyErr_NoMemory();
    strcpy(pool->handler.name, "graphduel_pool");
    pool->handler.version = 1;
    pool->handler.allocator.ctx = pool;
    pool->handler.allocator.malloc = pool_malloc;
    pool->handler.allocator.calloc = pool_calloc;
    pool->handler.allocator.realloc = pool_realloc;
    pool->handler.allocator.free = pool_free;
    pool->threshold = (size_t)threshold;
    pool->limit = (size_t)limit;
    PyObject *capsule = PyCapsule_New(pool, CAPSULE, forget_pool);
    if (capsule == NULL)
        PyMem_Free(pool);
    return capsule;
}

/* Let a handler serve this thread from now on; who did before. */
static PyObject *
serve(PyObject *capsule)
{
    PyDataMem_Handler *handler = handler_in(capsule);
    if (handler == NULL)
        return NULL;
    int is_ours = handler->allocator.malloc == pool_malloc;
    reuse_from = is_ours ? (Py_ssize_t)Py_MAX(((Pool *)handler)->threshold, 1) : PY_SSIZE_T_MAX;
    return PyDataMem_SetHandler(capsule);
}

/* enter_pool(pool): turn it on in this thread. False where it serves already. */
PyObject *
enter_pool(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    Pool *pool = pool_in(capsule);
    if (pool == NULL)
        return NULL;
    if (pool->before != NULL)
        Py_RETURN_FALSE;
    if ((pool->before = serve(capsule)) == NULL)
        return NULL;
    pool->use = ++pool->uses;
    Py_RETURN_TRUE;
}

/* A handler as a pool that has been left while it served, perhaps by another thread or within an inner one; NULL if not. */
static Pool *
left(PyObject *capsule)
{
    Pool *pool = handler_in(capsule)->allocator.malloc == pool_malloc ? (Pool *)handler_in(capsule) : NULL;
    return pool != NULL && pool->use == 0 && pool->before != NULL ? pool : NULL;
}

/* leave_pool(pool): turn it off, and free what is kept. Where it serves this thread, who served before does so again. Until
   then it hands memory on as it gets it. Does nothing to one that is off. */
PyObject *
leave_pool(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    Pool *pool = pool_in(capsule);
    if (pool == NULL)
        return NULL;
    turn_off(pool);
    PyObject *serving = PyDataMem_GetHandler();
    for (Pool *gone; serving != NULL && (gone = left(serving)) != NULL;) {
        PyObject *before = gone->before, *itself = serve(before);
        gone->before = NULL;
        Py_XDECREF(itself);
        Py_SETREF(serving, before);
    }
    Py_XDECREF(serving);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* pool_stats(pool): see PoolStats in dynamic/pool.py. */
PyObject *
pool_stats(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    Pool *pool = pool_in(capsule);
    if (pool == NULL)
        return NULL;
    return Py_BuildValue("nnnnn", (Py_ssize_t)pool->in_use, (Py_ssize_t)pool->kept, (Py_ssize_t)pool->peak,
                         (Py_ssize_t)pool->peak_in_use, (Py_ssize_t)pool->fresh);
}
