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

static atomic_long live, peak, blocks;

static void *counted(void *block)
{
    if (block == NULL)
        return NULL;
    long size = (long)malloc_usable_size(block);
    long now = atomic_fetch_add(&live, size) + size, most = atomic_load(&peak);
    atomic_fetch_add(&blocks, 1);
    while (now > most && !atomic_compare_exchange_weak(&peak, &most, now))
        ;
    return block;
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }
void *memalign(size_t align, size_t size) { return counted(__libc_memalign(align, size)); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

void free(void *block)
{
    if (block != NULL)
        atomic_fetch_sub(&live, (long)malloc_usable_size(block));
    __libc_free(block);
}

void *realloc(void *block, size_t size)
{
    long before = block == NULL ? 0 : (long)malloc_usable_size(block);
    void *moved = __libc_realloc(block, size);
    if (moved != NULL || size == 0)
        atomic_fetch_sub(&live, before);
    return counted(moved);
}

int posix_memalign(void **block, size_t align, size_t size)
{
    *block = memalign(align, size);
    return *block == NULL ? ENOMEM : 0;
}

long graphduel_heap_live(void) { return atomic_load(&live); }
long graphduel_heap_peak(void) { return atomic_load(&peak); }
long graphduel_heap_blocks(void) { return atomic_load(&blocks); }

void graphduel_heap_restart(void)
{
    atomic_store(&peak, atomic_load(&live));
    atomic_store(&blocks, 0);
}
