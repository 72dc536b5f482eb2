/* An allocator for NumPy's arrays: each block has pages of its own, between two pages that nobody may touch.

   It ends where a page ends, or begins where one begins. What was not asked for zeros holds NaN. A page before all of
   that holds the block's size. */

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static int begins; /* where a page begins */

void guards_begin(int before) { begins = before; }

static size_t room(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

static size_t *head(void *at) { return (size_t *)((size_t)at / PAGE * PAGE - 2 * PAGE); }

static void *block(size_t wanted)
{
    size_t size = wanted ? wanted : 1;
    char *start = mmap(NULL, room(size) + 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start, PAGE, PROT_READ | PROT_WRITE)
        || mprotect(start + 2 * PAGE, room(size), PROT_READ | PROT_WRITE))
        return NULL;
    *(size_t *)start = size;
    return start + 2 * PAGE + (begins ? 0 : room(size) - size);
}

void *guards_malloc(void *context, size_t size)
{
    void *at = block(size);
    (void)context;
    return at ? memset(at, 0xFF, size) : NULL;
}

void *guards_calloc(void *context, size_t count, size_t size)
{
    (void)context;
    return block(count * size);
}

void guards_free(void *context, void *at, size_t size)
{
    (void)context, (void)size;
    if (at)
        munmap(head(at), room(*head(at)) + 3 * PAGE);
}

void *guards_realloc(void *context, void *at, size_t size)
{
    void *new = guards_malloc(context, size);
    if (new && at) {
        memcpy(new, at, *head(at) < size ? *head(at) : size);
        guards_free(context, at, 0);
    }
    return new;
}
