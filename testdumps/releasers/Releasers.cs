using System; using System.Collections.Concurrent; using System.Collections.Generic; using System.Threading; using System.Threading.Tasks;
// Toub's lock with a cached releaser task
public sealed class ToubLock { readonly SemaphoreSlim m_sem = new(1,1); readonly Task<IDisposable> m_rel;
  public ToubLock() { m_rel = Task.FromResult((IDisposable)new Rel(this)); }
  public Task<IDisposable> LockAsync() { var wait = m_sem.WaitAsync(); return wait.IsCompleted ? m_rel : wait.ContinueWith((_, st) => (IDisposable)st!, m_rel.Result, CancellationToken.None, TaskContinuationOptions.ExecuteSynchronously, TaskScheduler.Default); }
  sealed class Rel : IDisposable { readonly ToubLock l; public Rel(ToubLock x)=>l=x; public void Dispose()=>l.m_sem.Release(); } }
// extension
static class Ext { public static async Task<IDisposable> EnterScopeAsync(this SemaphoreSlim s, CancellationToken ct=default) { await s.WaitAsync(ct).ConfigureAwait(false); return new D(s); }
  sealed class D : IDisposable { SemaphoreSlim s; public D(SemaphoreSlim x)=>s=x; public void Dispose(){ s?.Release(); s=null; } } }
// enter / exit
public class Gate { readonly SemaphoreSlim _s = new(1,1); public Task EnterAsync() => _s.WaitAsync(); public void Exit() => _s.Release(); }
// keyed
public class KeyedLock { readonly ConcurrentDictionary<string, SemaphoreSlim> _all = new();
  public async Task<IAsyncDisposable> AcquireAsync(string key) { var s = _all.GetOrAdd(key, _ => new SemaphoreSlim(1,1)); await s.WaitAsync(); return new Lease(s); }
  sealed class Lease(SemaphoreSlim s) : IAsyncDisposable { public ValueTask DisposeAsync() { s.Release(); return default; } } }
class Account(string name) { public readonly string Name = name; readonly ToubLock _l = new(); public Task<IDisposable> Lock() => _l.LockAsync(); }
class Service { readonly SemaphoreSlim _gate = new(1,1); readonly TaskCompletionSource _never = new();
  public async Task Outer() { using var _ = await _gate.EnterScopeAsync(); await Middle(); }
  async Task Middle() { await Task.Yield(); await Inner(); }
  async Task Inner() { using (await _gate.EnterScopeAsync()) await _never.Task; } }
static class Program {
  static readonly Gate G1 = new(), G2 = new(); static readonly KeyedLock K = new();
  static async Task Transfer(Account a, Account b, Task both) { using (await a.Lock()) { await both; using (await b.Lock()) Console.WriteLine("never"); } }
  static async Task G1G2(Task both) { await G1.EnterAsync(); try { await both; await G2.EnterAsync(); try { } finally { G2.Exit(); } } finally { G1.Exit(); } }
  static async Task G2G1(Task both) { await G2.EnterAsync(); try { await both; await G1.EnterAsync(); try { } finally { G1.Exit(); } } finally { G2.Exit(); } }
  static async Task KeyAB(Task both) { await using (await K.AcquireAsync("a")) { await both; await using (await K.AcquireAsync("b")) Console.WriteLine(); } }
  static async Task KeyBA(Task both) { await using var x = await K.AcquireAsync("b"); await both; await using var y = await K.AcquireAsync("a"); Console.WriteLine(); }
  static async Task Main() {
    var tcs = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
    Account a = new("a"), b = new("b"); var s = new Service();
    var all = new[]{ Transfer(a,b,tcs.Task), Transfer(b,a,tcs.Task), G1G2(tcs.Task), G2G1(tcs.Task), KeyAB(tcs.Task), KeyBA(tcs.Task), s.Outer() };
    tcs.SetResult(); await Task.Delay(300); Console.WriteLine("READY"); await Task.WhenAll(all); }
}
