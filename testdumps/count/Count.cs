// A program with a known answer: operations that end, and some that never do.
//
//   Count OPERATIONS STEPS STUCK [--at-once N] [--wait MS] [--hold MS] [--pause MS] [--log FILE]
//
// It waits for --wait, runs OPERATIONS with STEPS suspensions each, --at-once of them side by side, starts STUCK
// operations that wait for ever spread evenly among them, says what it counted, and holds for --hold.
// --log keeps begin and end of each operation in a memory-mapped file, which survives a kill: 8 counters of 8 bytes
// (creates, suspends, resumes, completes, stuck, phase), then begin and end of each operation, in ticks of the
// recording's clock; the stuck ones come first.
using System;
using System.Diagnostics;
using System.IO;
using System.IO.MemoryMappedFiles;
using System.Threading;
using System.Threading.Tasks;

// The log: counters, then begin and end of each operation.
static unsafe class Log
{
    static long* at;

    public static void Open(string? file, int operations)
    {
        long size = 8 * (8 + 2 * (long)operations);
        var map = file == null
            ? MemoryMappedFile.CreateNew(null, size)
            : MemoryMappedFile.CreateFromFile(file, FileMode.Create, null, size);
        byte* start = null;
        map.CreateViewAccessor().SafeMemoryMappedViewHandle.AcquirePointer(ref start);
        at = (long*)start;
    }

    public static void Count(int counter) => Interlocked.Increment(ref at[counter]);
    public static long Counted(int counter) => at[counter];
    public static void Phase(int phase) => at[5] = phase;
    public static void Begins(int operation) => at[8 + 2 * operation] = Stopwatch.GetTimestamp();
    public static void Ends(int operation) => at[9 + 2 * operation] = Stopwatch.GetTimestamp();
}

static class Program
{
    static readonly TaskCompletionSource Never = new(TaskCreationOptions.RunContinuationsAsynchronously);

    static async Task<int> Leaf(int operation, int steps, int pause)
    {
        for (int i = 0; i < steps; i++)
        {
            Log.Count(1);
            if (pause > 0) await Task.Delay(pause); else await Task.Yield();
            Log.Count(2);
        }
        return operation;
    }

    static async Task<int> Middle(int operation, int steps, int pause) => await Leaf(operation, steps, pause) + 1;

    static async Task Operation(int operation, int steps, int pause)
    {
        Log.Count(0);
        Log.Begins(operation);
        await Middle(operation, steps, pause);
        Log.Ends(operation);
        Log.Count(3);
    }

    static async Task Stuck(int operation)
    {
        Log.Count(0);
        Log.Count(4);
        Log.Begins(operation);
        Log.Count(1);
        await Never.Task;
    }

    static async Task StuckOuter(int operation) => await Stuck(operation);

    static int Option(string[] args, string name, int otherwise)
    {
        int at = Array.IndexOf(args, name);
        return at < 0 ? otherwise : int.Parse(args[at + 1]);
    }

    static int Main(string[] args)
    {
        int operations = int.Parse(args[0]), steps = int.Parse(args[1]), stuck = int.Parse(args[2]);
        int atOnce = Option(args, "--at-once", 8), pause = Option(args, "--pause", 0);
        int named = Array.IndexOf(args, "--log");
        Log.Open(named < 0 ? null : args[named + 1], operations + stuck);
        Console.WriteLine($"pid={Environment.ProcessId}");
        Console.Out.Flush();
        Thread.Sleep(Option(args, "--wait", 0));
        Log.Phase(1);
        var clock = Stopwatch.StartNew();
        var running = new Task[Math.Max(1, Math.Min(atOnce, operations))];
        Array.Fill(running, Task.CompletedTask);
        for (int i = 0, begun = 0; i <= operations; i++)
        {
            for (; begun < stuck && (long)begun * operations <= (long)i * stuck; begun++) _ = StuckOuter(begun);
            if (i == operations) break;
            int free = Array.FindIndex(running, t => t.IsCompleted);
            if (free < 0) free = Task.WaitAny(running);
            running[free] = Operation(stuck + i, steps, pause);
        }
        Task.WaitAll(running);
        Log.Phase(2);
        Console.WriteLine($"elapsed_ms={clock.Elapsed.TotalMilliseconds:F2} creates={Log.Counted(0)} suspends={Log.Counted(1)} "
            + $"resumes={Log.Counted(2)} completes={Log.Counted(3)} stuck={Log.Counted(4)} checksum={Log.Counted(0) * 31 + Log.Counted(3)}");
        Console.Out.Flush();
        Thread.Sleep(Option(args, "--hold", 0));
        GC.KeepAlive(Never);
        return 0;
    }
}
