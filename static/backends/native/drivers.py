"""The machine code that runs loops and branches, as LLVM IR: `flow` says what the tables hold that it reads.

A loop looks every so many operations whether Ctrl-C was pressed, by Python's own PyErr_CheckSignals. Then it stops, and
so does every loop of this call that comes after; the step ends with the exception.
"""

LOOK = 1 << 24  # operations between two looks: some milliseconds

DRIVERS = f"""
define internal void @run_all(i64 %count, ptr %calls) {{
start:
  %idle = icmp eq i64 %count, 0
  br i1 %idle, label %done, label %run
run:
  %c = phi i64 [ 0, %start ], [ %c1, %run ]
  %cp = getelementptr [2 x ptr], ptr %calls, i64 %c
  %fn = load ptr, ptr %cp
  %row_p = getelementptr ptr, ptr %cp, i64 1
  %row = load ptr, ptr %row_p
  call void %fn(ptr %row)
  %c1 = add i64 %c, 1
  %more = icmp ult i64 %c1, %count
  br i1 %more, label %run, label %done
done:
  ret void
}}

define internal void @run_list(ptr %table, i64 %number) {{
  %p = getelementptr [2 x i64], ptr %table, i64 %number
  %count = load i64, ptr %p
  %calls_p = getelementptr i64, ptr %p, i64 1
  %calls = load ptr, ptr %calls_p
  call void @run_all(i64 %count, ptr %calls)
  ret void
}}

define internal void @look(ptr %context, i64 %operations) {{
start:
  %since_p = getelementptr i64, ptr %context, i64 1
  %since = load i64, ptr %since_p
  %sum = add i64 %since, %operations
  store i64 %sum, ptr %since_p
  %due = icmp ugt i64 %sum, {LOOK}
  br i1 %due, label %check, label %done
check:
  store i64 0, ptr %since_p
  %ensure_p = getelementptr i64, ptr %context, i64 2
  %ensure = load ptr, ptr %ensure_p
  %check_p = getelementptr i64, ptr %context, i64 3
  %check_signals = load ptr, ptr %check_p
  %release_p = getelementptr i64, ptr %context, i64 4
  %release = load ptr, ptr %release_p
  %state = call i32 %ensure()
  %bad = call i32 %check_signals()
  call void %release(i32 %state)
  %raised = icmp ne i32 %bad, 0
  br i1 %raised, label %stop, label %done
stop:
  store i64 1, ptr %context
  br label %done
done:
  ret void
}}

define void @loop_while(ptr %row) {{
start:
  %context = load ptr, ptr %row
  %truths_p = getelementptr i64, ptr %row, i64 1
  %truths = load ptr, ptr %truths_p
  %operations_p = getelementptr i64, ptr %row, i64 2
  %operations = load i64, ptr %operations_p
  %lists = getelementptr i64, ptr %row, i64 3
  br label %turn
turn:
  %t = phi i64 [ 0, %start ], [ %other, %body ]
  %stopped = load i64, ptr %context
  %stops = icmp ne i64 %stopped, 0
  br i1 %stops, label %done, label %ask
ask:
  %first = mul i64 %t, 3
  call void @run_list(ptr %lists, i64 %first)
  %truth_p = getelementptr ptr, ptr %truths, i64 %t
  %truth_at = load ptr, ptr %truth_p
  %truth = load i8, ptr %truth_at
  %holds = icmp ne i8 %truth, 0
  br i1 %holds, label %body, label %out
body:
  %second = add i64 %first, 1
  call void @run_list(ptr %lists, i64 %second)
  call void @look(ptr %context, i64 %operations)
  %other = sub i64 1, %t
  br label %turn
out:
  %third = add i64 %first, 2
  call void @run_list(ptr %lists, i64 %third)
  br label %done
done:
  ret void
}}

define void @switch(ptr %row) {{
start:
  %places_p = getelementptr i64, ptr %row, i64 1
  %places = load ptr, ptr %places_p
  %at = load ptr, ptr %places
  %kind_p = getelementptr i64, ptr %row, i64 2
  %kind = load i64, ptr %kind_p
  %count_p = getelementptr i64, ptr %row, i64 3
  %count = load i64, ptr %count_p
  %lists = getelementptr i64, ptr %row, i64 4
  switch i64 %kind, label %truth [ i64 1, label %int
                                   i64 2, label %long ]
truth:
  %b = load i8, ptr %at
  %is = icmp ne i8 %b, 0
  %bw = zext i1 %is to i64
  br label %chosen
int:
  %i = load i32, ptr %at, align 1
  %iw = sext i32 %i to i64
  br label %chosen
long:
  %l = load i64, ptr %at, align 1
  br label %chosen
chosen:
  %index = phi i64 [ %bw, %truth ], [ %iw, %int ], [ %l, %long ]
  %negative = icmp slt i64 %index, 0
  %above = select i1 %negative, i64 0, i64 %index
  %last = sub i64 %count, 1
  %beyond = icmp sgt i64 %above, %last
  %number = select i1 %beyond, i64 %last, i64 %above
  call void @run_list(ptr %lists, i64 %number)
  ret void
}}
"""
