"""The machine code that Python calls, as LLVM IR: `step` says what it does, and what the table holds that it reads."""

ENTRY = """
define ptr @entry(ptr %self, ptr %args, i64 %given) {
start:
  %tp = getelementptr i8, ptr %self, i64 16
  %table = load ptr, ptr %tp
  %count = load i64, ptr %table
  %made_p = getelementptr i64, ptr %table, i64 1
  %made = load i64, ptr %made_p
  %all = add i64 %count, %made
  %io = alloca ptr, i64 %all
  %none = icmp eq i64 %count, 0
  br i1 %none, label %allocate, label %read
read:
  %i = phi i64 [ 0, %start ], [ %i1, %fine ]
  %ap = getelementptr ptr, ptr %args, i64 %i
  %a = load ptr, ptr %ap
  %fp = getelementptr i8, ptr %a, i64 64
  %f = load i32, ptr %fp
  %m = and i32 %f, 257
  %whole = icmp eq i32 %m, 257
  br i1 %whole, label %fine, label %refuse
fine:
  %dp = getelementptr i8, ptr %a, i64 16
  %d = load ptr, ptr %dp
  %ip = getelementptr ptr, ptr %io, i64 %i
  store ptr %d, ptr %ip
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %read, label %allocate
refuse:
  %no_p = getelementptr i64, ptr %table, i64 9
  %no = load ptr, ptr %no_p
  %rinc_p = getelementptr i64, ptr %table, i64 10
  %rinc = load ptr, ptr %rinc_p
  call void %rinc(ptr %no)
  ret ptr %no
allocate:
  %inc_p = getelementptr i64, ptr %table, i64 10
  %inc = load ptr, ptr %inc_p
  %tuple_p = getelementptr i64, ptr %table, i64 11
  %new_tuple = load ptr, ptr %tuple_p
  %set_p = getelementptr i64, ptr %table, i64 12
  %set = load ptr, ptr %set_p
  %empty_p = getelementptr i64, ptr %table, i64 13
  %empty = load ptr, ptr %empty_p
  %specs_p = getelementptr i64, ptr %table, i64 2
  %specs = load ptr, ptr %specs_p
  %nothing = icmp eq i64 %made, 0
  br i1 %nothing, label %yes, label %tuple
yes:
  %yes_p = getelementptr i64, ptr %table, i64 8
  %yes_o = load ptr, ptr %yes_p
  call void %inc(ptr %yes_o)
  br label %patches
tuple:
  %t = call ptr %new_tuple(i64 %made)
  %bad_t = icmp eq ptr %t, null
  br i1 %bad_t, label %fail, label %make
make:
  %j = phi i64 [ 0, %tuple ], [ %j1, %made_one ]
  %sp = getelementptr [4 x i64], ptr %specs, i64 %j
  %nd = load i64, ptr %sp
  %nd32 = trunc i64 %nd to i32
  %dims_p = getelementptr i64, ptr %sp, i64 1
  %dims = load ptr, ptr %dims_p
  %dt_p = getelementptr i64, ptr %sp, i64 2
  %dt = load ptr, ptr %dt_p
  call void %inc(ptr %dt)
  %o = call ptr %empty(i32 %nd32, ptr %dims, ptr %dt, i32 0)
  %bad_o = icmp eq ptr %o, null
  br i1 %bad_o, label %drop, label %made_one
made_one:
  %ignored = call i32 %set(ptr %t, i64 %j, ptr %o)
  %odp = getelementptr i8, ptr %o, i64 16
  %od = load ptr, ptr %odp
  %place = add i64 %count, %j
  %op = getelementptr ptr, ptr %io, i64 %place
  store ptr %od, ptr %op
  %j1 = add i64 %j, 1
  %more_made = icmp ult i64 %j1, %made
  br i1 %more_made, label %make, label %patches
drop:
  %dec_p = getelementptr i64, ptr %table, i64 14
  %dec = load ptr, ptr %dec_p
  call void %dec(ptr %t)
  br label %fail
fail:
  ret ptr null
patches:
  %result = phi ptr [ %yes_o, %yes ], [ %t, %made_one ]
  %np_p = getelementptr i64, ptr %table, i64 3
  %np = load i64, ptr %np_p
  %patch_p = getelementptr i64, ptr %table, i64 4
  %patch = load ptr, ptr %patch_p
  %unpatched = icmp eq i64 %np, 0
  br i1 %unpatched, label %unlock, label %write
write:
  %k = phi i64 [ 0, %patches ], [ %k1, %write ]
  %wp = getelementptr [3 x i64], ptr %patch, i64 %k
  %slot = load ptr, ptr %wp
  %which_p = getelementptr i64, ptr %wp, i64 1
  %which = load i64, ptr %which_p
  %off_p = getelementptr i64, ptr %wp, i64 2
  %off = load i64, ptr %off_p
  %src_p = getelementptr ptr, ptr %io, i64 %which
  %src = load ptr, ptr %src_p
  %at = getelementptr i8, ptr %src, i64 %off
  store ptr %at, ptr %slot
  %k1 = add i64 %k, 1
  %more_w = icmp ult i64 %k1, %np
  br i1 %more_w, label %write, label %unlock
unlock:
  %nc_p = getelementptr i64, ptr %table, i64 5
  %nc = load i64, ptr %nc_p
  %calls_p = getelementptr i64, ptr %table, i64 6
  %calls = load ptr, ptr %calls_p
  %long_p = getelementptr i64, ptr %table, i64 7
  %long = load i64, ptr %long_p
  %is_long = icmp ne i64 %long, 0
  br i1 %is_long, label %release, label %begin
release:
  %save_p = getelementptr i64, ptr %table, i64 15
  %save = load ptr, ptr %save_p
  %thread = call ptr %save()
  br label %begin
begin:
  %state = phi ptr [ null, %unlock ], [ %thread, %release ]
  %idle = icmp eq i64 %nc, 0
  br i1 %idle, label %ran, label %run
run:
  %c = phi i64 [ 0, %begin ], [ %c1, %run ]
  %cp = getelementptr [2 x ptr], ptr %calls, i64 %c
  %fn = load ptr, ptr %cp
  %row_p = getelementptr ptr, ptr %cp, i64 1
  %row = load ptr, ptr %row_p
  call void %fn(ptr %row)
  %c1 = add i64 %c, 1
  %more_c = icmp ult i64 %c1, %nc
  br i1 %more_c, label %run, label %ran
ran:
  br i1 %is_long, label %acquire, label %done
acquire:
  %restore_p = getelementptr i64, ptr %table, i64 16
  %restore = load ptr, ptr %restore_p
  call void %restore(ptr %state)
  br label %done
done:
  %context_p = getelementptr i64, ptr %table, i64 17
  %context = load ptr, ptr %context_p
  %flag = load i64, ptr %context
  %stopped = icmp ne i64 %flag, 0
  br i1 %stopped, label %interrupted, label %whole_step
whole_step:
  ret ptr %result
interrupted:
  store i64 0, ptr %context
  %drop_p = getelementptr i64, ptr %table, i64 14
  %drop_it = load ptr, ptr %drop_p
  call void %drop_it(ptr %result)
  ret ptr null
}
"""
