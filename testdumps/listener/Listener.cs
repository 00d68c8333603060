using System;
using System.Net;
using System.Net.Sockets;
using System.Threading.Tasks;

// A server that nobody calls: its one method waits for a connection.
static class Listener
{
    static async Task Serve(TcpListener listener)
    {
        while (true)
            (await listener.AcceptTcpClientAsync()).Dispose();
    }

    static async Task Main()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        var serving = Serve(listener);
        await Task.Delay(300);
        Console.WriteLine($"READY {Environment.ProcessId}");
        await serving;
    }
}
