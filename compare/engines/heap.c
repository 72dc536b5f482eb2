/* Counts the bytes that a process has from malloc, in all its threads: preloaded, so that it counts every library alike.
 *
 * glibc exports its own functions under the names that begin with __libc, so nothing has to be looked up, and no call
 * here can recurse. Sizes are those of the blocks, which malloc rounds up.
 */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_long live, least, rise; /* `least` is the least since the restart, `rise` the most above it */

static void changed(long bytes)
{
    long now = atomic_fetch_add(&live, bytes) + bytes, before = atomic_load(&least);
    while (now < before && !atomic_compare_exchange_weak(&least, &before, now))
        ;
    long above = now - before, most = atomic_load(&rise);
    while (above > most && !atomic_compare_exchange_weak(&rise, &most, above))
        ;
}

static void *counted(void *block)
{
    if (block != NULL)
        changed((long)malloc_usable_size(block));
    return block;
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }
void *memalign(size_t align, size_t size) { return counted(__libc_memalign(align, size)); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

void free(void *block)
{
    if (block != NULL)
        changed(-(long)malloc_usable_size(block));
    __libc_free(block);
}

void *realloc(void *block, size_t size)
{
    long before = block == NULL ? 0 : (long)malloc_usable_size(block);
    void *moved = __libc_realloc(block, size);
    if (moved == NULL && size != 0)
        return NULL; /* the block stays */
    changed((moved == NULL ? 0 : (long)malloc_usable_size(moved)) - before);
    return moved;
}

int posix_memalign(void **block, size_t align, size_t size)
{
    *block = memalign(align, size);
    return *block == NULL ? ENOMEM : 0;
}

long graphduel_heap_live(void) { return atomic_load(&live); }
long graphduel_heap_rise(void) { return atomic_load(&rise); }

void graphduel_heap_restart(void)
{
    atomic_store(&least, atomic_load(&live));
    atomic_store(&rise, 0);
}
