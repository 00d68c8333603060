// Customers whose orders wait, and every collection of .NET that is read: the program behind testdumps/shop-*.dmp.gz.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Shop;

public enum State : byte { New, Paid = 3, Shipped }

public class Customer
{
    public string Name { get; set; }
    public bool IsLocked;
}

public class Order
{
    public int Id { get; init; }
    public Customer Customer { get; init; }
    public State State;
    public double Total;
    public DateTime Due;
    public List<string> Lines = new();
    public TaskCompletionSource<string> Shipped = new(TaskCreationOptions.RunContinuationsAsynchronously);
}

public class Bag
{
    public Dictionary<int, string> ByNumber = new();
    public Dictionary<string, Order> ByName = new();
    public Dictionary<(int, int), Guid> ByPair = new();
    public ConcurrentDictionary<long, Order> Shared = new();
    public HashSet<string> Names = new();
    public Queue<int> Ring = new(4);
    public ConcurrentQueue<int> Lines = new();
    public ConcurrentQueue<Order> Orders = new();
    public Stack<string> Last = new();
    public LinkedList<int> Linked = new();
    public SortedList<string, int> Sorted = new();
    public PriorityQueue<string, int> Urgent = new();
    public int[,] Grid = { { 1, 2, 3 }, { 4, 5, 6 } };
    public State[] States = { State.New, State.Shipped };
    public byte[] Key = { 1, 2, 3 };
    public List<byte> Bytes = new() { 7, 8 };
    public List<bool?> Maybe = new() { true, null };
    public Dictionary<string, int> Empty = new();
}

public static class Program
{
    static readonly Dictionary<int, Order> s_pending = new();
    static readonly Bag s_bag = new();
    static object s_tail;
    [ThreadStatic] static Customer t_current;
    static readonly ConditionalWeakTable<Customer, Order> s_favourite = new();
    static Customer s_key;
    static GCHandle s_handle;

    static async Task<string> Ship(Order order, int attempt)
    {
        string label = order.Customer.Name + "/" + order.Id;
        string answer = await order.Shipped.Task;
        return label + answer + attempt;
    }

    static async Task Serve(Customer customer, int id)
    {
        var order = new Order { Id = id, Customer = customer, State = State.Paid, Total = id * 1.5, Due = new DateTime(2026, 11, 30, 12, 0, 0, DateTimeKind.Utc) };
        order.Lines.Add("book " + id);
        s_pending[id] = order;
        await Ship(order, 2);
    }

    static void Fill(Bag bag)
    {
        for (int i = 0; i < 40; i++) bag.ByNumber[i * 10] = "number " + i;
        bag.ByNumber.Remove(20);
        bag.ByNumber.Remove(70);
        foreach (var order in s_pending.Values)
        {
            bag.ByName["order " + order.Id] = order;
            bag.Shared[order.Id * 1_000_000_000L] = order;
            bag.Orders.Enqueue(order);
        }
        bag.ByPair[(1, 2)] = new Guid("00112233-4455-6677-8899-aabbccddeeff");
        foreach (string name in new[] { "ada", "bob", "cleo" }) bag.Names.Add(name);
        bag.Names.Remove("bob");
        for (int i = 0; i < 4; i++) bag.Ring.Enqueue(i);
        bag.Ring.Dequeue(); bag.Ring.Dequeue(); bag.Ring.Enqueue(4);
        for (int i = 0; i < 100; i++) bag.Lines.Enqueue(i);
        for (int i = 0; i < 5; i++) bag.Lines.TryDequeue(out _);
        bag.Last.Push("first"); bag.Last.Push("second");
        bag.Linked.AddLast(1); bag.Linked.AddLast(2); bag.Linked.AddFirst(0);
        bag.Sorted["b"] = 2; bag.Sorted["a"] = 1;
        bag.Urgent.Enqueue("later", 9); bag.Urgent.Enqueue("now", 1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Hold(Order held)
    {
        Console.Out.WriteLine("READY {}");
        Console.Out.Flush();
        Thread.Sleep(Timeout.Infinite);
        GC.KeepAlive(held);
    }

    public static void Main()
    {
        var customers = new[] { new Customer { Name = "Ada" }, new Customer { Name = "Bob", IsLocked = true } };
        for (int id = 101; id <= 103; id++) _ = Serve(customers[id % 2], id);
        Fill(s_bag);
        var key = new Customer { Name = "Key" };
        s_key = key;
        s_favourite.Add(key, new Order { Id = 900, Customer = key });
        s_handle = GCHandle.Alloc(new Order { Id = 901, Customer = key });
        object tail = null;
        for (int i = 0; i < 40; i++) tail = new object[] { tail ?? new Order { Id = 902 } };
        s_tail = tail;
        t_current = new Customer { Name = "Static of a thread" };
        Hold(new Order { Id = 903, Customer = key });
    }
}
