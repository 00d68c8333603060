// What looks like a deadlock and is none, what is one and does not look like it, and who would complete what.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;

// Two full channels: each node writes before it reads. A deadlock.
static class Full
{
    static readonly Channel<int> s_left = Channel.CreateBounded<int>(1), s_right = Channel.CreateBounded<int>(1);
    public static async Task Left() { while (true) { await s_right.Writer.WriteAsync(1); await s_right.Writer.WriteAsync(2); await s_left.Reader.ReadAsync(); } }
    public static async Task Right() { while (true) { await s_left.Writer.WriteAsync(1); await s_left.Writer.WriteAsync(2); await s_right.Reader.ReadAsync(); } }
}

// A signal whose Set completes what it keeps: each waits before it sets the other's. A deadlock.
sealed class Signal
{
    readonly Queue<TaskCompletionSource> _waiters = new();
    public Task WaitAsync() { var source = new TaskCompletionSource(); _waiters.Enqueue(source); return source.Task; }
    public void Set() => _waiters.Dequeue().SetResult();
}
static class Turns
{
    static readonly Signal s_ping = new(), s_pong = new();
    public static async Task Ping() { await s_ping.WaitAsync(); s_pong.Set(); }
    public static async Task Pong() { await s_pong.WaitAsync(); s_ping.Set(); }
}

// A context of one thread that blocks on a method which goes on there. A deadlock, also after a collection.
sealed class Pump : SynchronizationContext
{
    readonly BlockingCollection<(SendOrPostCallback, object)> _work = new();
    public override void Post(SendOrPostCallback d, object state) => _work.Add((d, state));
    public void Run() { SetSynchronizationContext(this); foreach (var (d, state) in _work.GetConsumingEnumerable()) d(state); }
    public static async Task Load() { await Task.Delay(20); }
}

// One that waits for an event and sets another, but not when it is called first: a timer does so in an hour. None.
static class Round
{
    static readonly ManualResetEventSlim s_begun = new(), s_done = new();
    public static void Begin(bool first) { if (!first) s_begun.Wait(); s_done.Set(); }
    public static void End() { s_done.Wait(); s_begun.Set(); }
    public static Timer Later() => new(_ => Begin(true), null, 3_600_000, -1);
}

// Whoever has tried to enter in vain is not inside; the session is. None.
static class Tried
{
    static readonly SemaphoreSlim s_gate = new(1, 1);
    static readonly TaskCompletionSource s_told = new();
    public static async Task Session() { await s_gate.WaitAsync(); try { await Task.Delay(3_600_000); } finally { s_gate.Release(); } }
    public static async Task Try() { if (!await s_gate.WaitAsync(10)) await s_told.Task; else s_gate.Release(); }
    public static async Task Want() { await s_gate.WaitAsync(); s_gate.Release(); s_told.SetResult(); }
}

// Crossed waits that a time limit ends. No deadlock for ever.
static class Limited
{
    static readonly SemaphoreSlim s_a = new(1, 1), s_b = new(1, 1);
    public static async Task AB() { await s_a.WaitAsync(); await Task.Delay(100); if (await s_b.WaitAsync(3_600_000)) s_b.Release(); s_a.Release(); }
    public static async Task BA() { await s_b.WaitAsync(); await Task.Delay(100); if (await s_a.WaitAsync(3_600_000)) s_a.Release(); s_b.Release(); }
}

// An awaiter of the program's own that parks its continuation in a list.
static class Parking
{
    static readonly List<Action> s_parked = new();
    public readonly struct Place : INotifyCompletion { public Place GetAwaiter() => this; public bool IsCompleted => false; public void OnCompleted(Action a) => s_parked.Add(a); public void GetResult() { } }
    public static async Task Wait() { await new Place(); }
}

// Two methods of one name, and continuations of the program.
static class Names
{
    static readonly TaskCompletionSource<int> s_reply = new();
    public static async Task Save(int i) { await s_reply.Task; Console.WriteLine(i); }
    public static async Task Save(string s) { await s_reply.Task; Console.WriteLine(s); }
    public static Task Chained() => s_reply.Task.ContinueWith(Parse).ContinueWith(Store);
    static int Parse(Task<int> t) => t.Result;
    static void Store(Task<int> t) { }
}

static class Program
{
    static readonly List<object> s_kept = new();
    static Thread Start(string name, ThreadStart run) { var t = new Thread(run) { IsBackground = true, Name = name }; t.Start(); return t; }
    static void Main()
    {
        s_kept.AddRange(new object[] { Full.Left(), Full.Right(), Turns.Ping(), Turns.Pong(), Tried.Session(), Tried.Try(), Limited.AB(), Limited.BA(), Parking.Wait(), Names.Save(1), Names.Save("a"), Names.Chained(), Round.Later() });
        Thread.Sleep(50);
        s_kept.Add(Tried.Want());
        var pump = new Pump(); Start("pump", pump.Run); pump.Post(_ => Pump.Load().Wait(), null);
        Start("begin", () => Round.Begin(false)); Start("end", Round.End);
        Thread.Sleep(500); GC.Collect(); Console.WriteLine("READY"); Thread.Sleep(-1);
    }
}
