// A program with a known answer, for `asynctriage collect` and `asynctriage observe`.  usage: Awaits COUNT
//
// COUNT operations one after the other: Outer awaits Middle, which yields and awaits Inner, which waits a millisecond.
// It prints how long they took and the sum of their results, COUNT * (COUNT + 1) / 2. COUNT 0 means until it is ended.
using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Globalization;
using System.Threading.Tasks;

[EventSource(Name = "Awaits-Markers")]
public sealed class Markers : EventSource
{
    public static readonly Markers Log = new();
    [Event(1)] public void Begin(int operation) { WriteEvent(1, operation); }
    [Event(2)] public void Stage(int operation, int stage) { WriteEvent(2, operation, stage); }
    [Event(3)] public void End(int operation) { WriteEvent(3, operation); }
}

public static class Program
{
    public static async Task Main(string[] args)
    {
        int count = int.Parse(args[0]);
        long sum = 0;
        _ = Markers.Log;
        long start = Stopwatch.GetTimestamp();
        for (int i = 0; count == 0 || i < count; i++) sum += await Outer(i);
        double elapsed = Stopwatch.GetElapsedTime(start).TotalMilliseconds;
        HandOver();
        Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"elapsed_ms={elapsed:F3} checksum={sum}"));
    }

    // The async profiler of .NET 11 keeps the last events of each thread in a buffer; command 1 makes it write them out.
    static void HandOver()
    {
        foreach (var source in EventSource.GetSources())
            if (source.Name.EndsWith("AsyncProfilerEventSource", StringComparison.Ordinal) && source.IsEnabled())
                EventSource.SendCommand(source, (EventCommand)1, null);
    }

    static async Task<int> Outer(int n) { Markers.Log.Begin(n); int result = await Middle(n); Markers.Log.End(n); return result; }
    static async Task<int> Middle(int n) { Markers.Log.Stage(n, 1); await Task.Yield(); Markers.Log.Stage(n, 2); return await Inner(n); }
    static async Task<int> Inner(int n) { Markers.Log.Stage(n, 3); await Task.Delay(1); Markers.Log.Stage(n, 4); return n + 1; }
}
