use super::*;
use proptest::prelude::*;

/// `Name.Space:Outer+Inner` as a path.
fn path(text: &str) -> TypePath {
    let (namespace, names) = text.split_once(':').unwrap_or(("", text));
    TypePath {
        namespace: namespace.into(),
        segments: names.split('+').map(str::to_owned).collect(),
    }
}

/// `A,B` as generic arguments.
fn list(text: &str) -> Vec<String> {
    text.split(',')
        .filter(|arg| !arg.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn names_the_methods_of_state_machines() {
    // type, generic arguments, method; names that Roslyn wrote unless noted
    let cases = [
        ("Ns:Chain+<Outer>d__5", "", "Ns.Chain.Outer"),
        (
            "Ns:Store`1+<LoadAsync>d__1`1",
            "Guid,String",
            "Ns.Store<Guid>.LoadAsync<String>",
        ),
        (
            "Ns:Store`1+Nested+<TupleAsync>d__0",
            "Int32",
            "Ns.Store<Int32>.Nested.TupleAsync",
        ),
        ("Ns:Pair`2+<M>d__0`2", "A,B,C,D", "Ns.Pair<A, B>.M<C, D>"),
        ("Ns:Store`1+<LoadAsync>d__1`1", "", "Ns.Store.LoadAsync"),
        (
            "Ns:Store`1+<LoadAsync>d__1`1",
            "Guid",
            "Ns.Store<Guid>.LoadAsync",
        ),
        ("Ns:NoArity+<M>d__0", "A,B", "Ns.NoArity.M<A, B>"),
        ("<Go>d__1", "", "Go"),
        ("FsApp+fetch@6", "", "FsApp.fetch"),
        ("Ns:Pump+drain@8-6", "", "Ns.Pump.drain"),
        ("Ns:T+<get_Items>d__11", "", "Ns.T.get_Items"),
        // lambdas
        ("Ns:Names+<>c+<<Run>b__3_0>d", "", "Ns.Names.Run lambda"),
        (
            "Ns:Names+<>c__DisplayClass3_0+<<Run>b__1>d",
            "",
            "Ns.Names.Run lambda",
        ),
        (
            "Ns:Host+<<StartAsync>b__16_1>d",
            "",
            "Ns.Host.StartAsync lambda",
        ),
        (
            "Ns:Gen`1+<>c__7`1+<<Go>b__7_2>d",
            "Int32,String",
            "Ns.Gen<Int32>.Go<String> lambda",
        ),
        (
            "Ns:Gen`1+<<Inst>b__8_0>d`1",
            "Int32,String",
            "Ns.Gen<Int32>.Inst<String> lambda",
        ),
        (
            "Ns:Gen`1+<<-ctor>b__1_0>d",
            "Int32",
            "Ns.Gen<Int32>..ctor lambda",
        ),
        ("Ns:Gen`1+<>c+<<-cctor>b__2_0>d", "", "Ns.Gen..cctor lambda"),
        // local functions
        ("Ns:Names+<<Run>g__Local|3_2>d", "", "Ns.Names.Run.Local"),
        (
            "Ns:T+<>c__DisplayClass10_0+<<M>g__Local|0>d",
            "",
            "Ns.T.M.Local",
        ),
        (
            "Ns:Gen`1+<<Go>g__L|7_0>d`2",
            "Int32,U,V",
            "Ns.Gen<Int32>.Go.L<U, V>",
        ),
        (
            "Ns:Gen`1+<>c__DisplayClass4_0`1+<<M>g__L|1>d`1",
            "T,Q,Z",
            "Ns.Gen<T>.M<Q>.L<Z>",
        ),
        // top-level statements
        ("Program+<<Main>$>d__0", "", "Program.Main"),
        ("Program+<Main>d__1", "", "Program.Main"),
        ("Program+<>c+<<<Main>$>b__0_0>d", "", "Program.Main lambda"),
        (
            "Program+<<<Main>$>g__TopLocal|0_1>d",
            "",
            "Program.Main.TopLocal",
        ),
        // explicit implementations
        (
            "Scenarios:Names+Store`1+<Scenarios-Names-IStore-GetAsync>d__0",
            "String",
            "Scenarios.Names.Store<String>.Scenarios.Names.IStore.GetAsync",
        ),
        (
            "Ns:T+<Ns-IFoo<System-Int32>-BarAsync>d__3",
            "",
            "Ns.T.Ns.IFoo<Int32>.BarAsync",
        ),
        (
            "Ns:Gen`1+<Ns-IFoo<System-Collections-Generic-Dictionary<System-Int32,System-String>,T>-Gen>d__4`1",
            "Byte,Q",
            "Ns.Gen<Byte>.Ns.IFoo<Dictionary<Int32, String>, T>.Gen<Q>",
        ),
        (
            "Ns:Gen`1+<>c+<<Ns-IFoo<System-Int32>-get_P>b__6_0>d",
            "B",
            "Ns.Gen<B>.Ns.IFoo<Int32>.get_P lambda",
        ),
        // file-local types, Edit and Continue (the latter after Roslyn's constants)
        (
            "Ns:<Odd>F3074381356C496B2005453C49689759FCFE647DE8AE30DE189EA5CC4659AE732__Hidden+<M>d__0",
            "",
            "Ns.Hidden.M",
        ),
        ("Ns:T+<M>d__1#1", "", "Ns.T.M"),
        (
            "Ns:T+<>c__DisplayClass0_0#2+<<M>b__0#1>d",
            "",
            "Ns.T.M lambda",
        ),
        ("Ns:T+<M>d__1#1`1", "A", "Ns.T.M<A>"),
        // Visual Basic (after Roslyn's constants)
        (
            "Ns:Store+VB$StateMachine_3_GetAsync",
            "",
            "Ns.Store.GetAsync",
        ),
        (
            "Ns:Store`1+VB$StateMachine_12_Get_All`1",
            "A,B",
            "Ns.Store<A>.Get_All<B>",
        ),
        (
            "Ns:Store+_Closure$__+VB$StateMachine___Lambda$__1-0",
            "",
            "Ns.Store lambda",
        ),
        (
            "Ns:Store+_Closure$__2-0+VB$StateMachine___Lambda$__0",
            "",
            "Ns.Store lambda",
        ),
    ];
    for (ty, args, expected) in cases {
        let name = state_machine_method(&path(ty), &list(args));
        assert_eq!(name.text, expected, "{ty}");
        assert_eq!(name.is_lambda, expected.ends_with(" lambda"), "{ty}");
        assert!(name.is_state_machine, "{ty}");
    }
}

#[test]
fn other_types_are_named_themselves() {
    let cases = [
        (
            "System.Collections.Generic:List`1",
            "String",
            "System.Collections.Generic.List<String>",
        ),
        ("Ns:Outer`1+Inner`1", "A,B", "Ns.Outer<A>.Inner<B>"),
        ("Ns:T+<>c__DisplayClass0_0", "", "Ns.T"),
        ("<>c", "", "<>c"),
        ("Ns:<>c+<>c__DisplayClass1", "", "Ns.<>c+<>c__DisplayClass1"),
        (
            "<>f__AnonymousType0`1",
            "Int32",
            "<>f__AnonymousType0<Int32>",
        ),
        ("Ns:Ext+<G>$34505F56", "", "Ns.Ext.<G>$34505F56"),
        ("Ns:T+<>d__1", "", "Ns.T.<>d__1"),
        ("Ns:T+<M>d__x", "", "Ns.T.<M>d__x"),
        ("Ns:T+<M", "", "Ns.T.<M"),
        ("Ns:T+M>d__0", "", "Ns.T.M>d__0"),
        ("Ns:VB$StateMachine_", "", "Ns.VB$StateMachine_"),
        ("Ns:VB$StateMachine_1_", "", "Ns.VB$StateMachine_1_"),
        ("Ns:`1", "", "Ns.`1"),
        ("Ns:T`x", "", "Ns.T`x"),
        ("Ns:", "", "Ns."),
        ("", "", "<unnamed>"),
    ];
    for (ty, args, expected) in cases {
        let name = state_machine_method(&path(ty), &list(args));
        assert_eq!(name.text, expected, "{ty}");
        assert!(!name.is_lambda && !name.is_state_machine, "{ty}");
    }
}

#[test]
fn names_methods() {
    let cases = [
        (
            "Ns:Store`1",
            "Guid",
            "Load",
            "String",
            "Ns.Store<Guid>.Load<String>",
        ),
        ("Ns:Store`1", "", ".ctor", "", "Ns.Store..ctor"),
        ("Ns:T", "", "get_Name", "", "Ns.T.get_Name"),
        (
            "Ns:T",
            "",
            "Ns.IStore.GetAsync",
            "",
            "Ns.T.Ns.IStore.GetAsync",
        ),
        (
            "Ns:T",
            "",
            "Ns.IFoo<System.Int32>.Bar",
            "",
            "Ns.T.Ns.IFoo<Int32>.Bar",
        ),
        ("Ns:T", "", "<M>b__0_0", "", "Ns.T.M lambda"),
        ("Ns:T+<>c", "", "<M>b__2_0", "", "Ns.T.M lambda"),
        ("Ns:T+<>c__2`1", "U", "<M>b__2_0", "", "Ns.T.M<U> lambda"),
        (
            "Ns:T+<>c__DisplayClass1_0",
            "",
            "<Ns.IFoo<System.Int32>.Bar>b__0",
            "",
            "Ns.T.Ns.IFoo<Int32>.Bar lambda",
        ),
        ("Ns:T+<>c", "", "<.ctor>b__1_0", "", "Ns.T..ctor lambda"),
        ("Ns:T", "", "<M>g__Local|0_0", "V", "Ns.T.M.Local<V>"),
        ("Ns:T", "", "<M>b__0_0#1", "", "Ns.T.M lambda"),
        ("Program", "", "<Main>$", "", "Program.Main"),
        ("Program", "", "<Main>", "", "Program.Main"),
        (
            "Program",
            "",
            "<<Main>$>g__Serve|0_1",
            "",
            "Program.Main.Serve",
        ),
        ("Ns:T+<M>d__3`1", "A", "MoveNext", "", "Ns.T.M<A>"),
        ("Ns:T+<>c+<<M>b__3_0>d", "", "MoveNext", "", "Ns.T.M lambda"),
        ("Ns:T+VB$StateMachine_1_M", "", "MoveNext", "", "Ns.T.M"),
        (
            "Ns:T+<M>d__3",
            "",
            "System.Collections.IEnumerator.MoveNext",
            "",
            "Ns.T.M",
        ),
        (
            "Ns:T+<M>d__3",
            "",
            "SetStateMachine",
            "",
            "Ns.T.M.SetStateMachine",
        ),
        ("Ns:Cursor", "", "MoveNext", "", "Ns.Cursor.MoveNext"),
        ("Ns:T+_Closure$__", "", "_Lambda$__1-0", "", "Ns.T lambda"),
        ("Ns:Module", "", "a<b", "", "Ns.Module.a<b"),
        ("Ns:T", "", "", "", "Ns.T"),
    ];
    for (ty, args, name, method_args, expected) in cases {
        assert_eq!(
            method(&path(ty), &list(args), name, &list(method_args)),
            expected,
            "{ty} {name}"
        );
    }
}

#[test]
fn numbers_the_lambdas_of_a_method() {
    let lambda = state_machine_method(&path("T+<>c+<<M>b__0_1>d"), &[]);
    assert_eq!(
        [1, 2, 3].map(|n| lambda.numbered(n)),
        ["T.M lambda", "T.M lambda#2", "T.M lambda#3"]
    );
    let plain = state_machine_method(&path("T+<M>d__0"), &[]);
    assert_eq!(plain.numbered(2), "T.M");
}

#[test]
fn simplifies_type_names() {
    let cases = [
        ("System.Int32", "Int32"),
        (
            "System.Collections.Generic.List`1<System.String>",
            "List<String>",
        ),
        (
            "System.Collections.Generic.Dictionary`2<System.Int32,System.String>",
            "Dictionary<Int32, String>",
        ),
        (
            "System.Collections.Generic.Dictionary`2<System.Int32, Ns.A`1<Ns.B+C>>",
            "Dictionary<Int32, A<C>>",
        ),
        ("Ns.Outer`1+Inner`1<A,B>", "Inner<A, B>"),
        ("System.Byte[]", "Byte[]"),
        ("Ns.T`1<System.Int32[,]>[]", "T<Int32[,]>[]"),
        ("System.Void*", "Void*"),
        ("Ns.Outer+<M>d__1`1<System.Int32>", "<M>d__1<Int32>"),
        (
            "Ns.A`1<<>f__AnonymousType0`1<System.Int32>>",
            "A<<>f__AnonymousType0<Int32>>",
        ),
        ("Ns.S`1<Ns.S`1<...>>", "S<S<...>>"),
        ("__Canon", "__Canon"),
        ("!0", "!0"),
        ("", "<unnamed>"),
        (".", "."),
    ];
    for (full, expected) in cases {
        assert_eq!(simple_type_name(full), expected, "{full}");
    }
}

#[test]
fn tells_what_fields_are() {
    let local = |name: &str| Some(LocalName::Local(name.into()));
    let captured = |name: &str| Some(LocalName::Captured(name.into()));
    let cases = [
        ("<sum>5__2", local("sum")),
        ("key", captured("key")),
        ("_key1", captured("_key1")),
        ("<>3__source", Some(LocalName::Original("source".into()))),
        ("<>4__this", Some(LocalName::This)),
        ("<>3__<>4__this", Some(LocalName::This)),
        ("<>u__1", Some(LocalName::Awaiter)),
        ("<>1__state", Some(LocalName::State)),
        ("<>t__builder", Some(LocalName::Builder)),
        ("<>2__current", Some(LocalName::Current)),
        ("<>8__1", Some(LocalName::Closure)),
        ("CS$<>8__locals1", Some(LocalName::Closure)),
        ("<>7__wrap1", Some(LocalName::Temporary)),
        ("<>s__3", Some(LocalName::Temporary)),
        ("<>l__initialThreadId", Some(LocalName::Temporary)),
        ("<>v__promiseOfValueOrEnd", Some(LocalName::Temporary)),
        ("<>w__disposeMode", Some(LocalName::Temporary)),
        ("<>x__combinedTokens", Some(LocalName::Temporary)),
        ("$VB$Local_key", captured("key")),
        ("$VB$ResumableLocal_sum$3", local("sum")),
        (
            "$VB$ResumableLocal_$VB$Closure_$0",
            Some(LocalName::Closure),
        ),
        ("$VB$Me", Some(LocalName::This)),
        ("$State", Some(LocalName::State)),
        ("$Builder", Some(LocalName::Builder)),
        ("$A0", Some(LocalName::Awaiter)),
        ("$S1", Some(LocalName::Temporary)),
        ("$U1", Some(LocalName::Temporary)),
        ("<Name>k__BackingField", None),
        ("<>9", None),
        ("$", None),
        ("$Ax", None),
        ("", None),
        ("<", None),
    ];
    for (field, expected) in cases {
        assert_eq!(hoisted_local(field), expected, "{field}");
    }
    assert_eq!(
        hoisted_local("<>4__this").unwrap().source_name(),
        Some("this")
    );
    assert_eq!(hoisted_local("<>u__1").unwrap().source_name(), None);
}

#[test]
fn long_nonsense_takes_no_time() {
    let text = "<".repeat(100_000);
    assert_eq!(simple_type_name(&text).len(), text.len());
    assert!(
        state_machine_method(&path(&text), &[])
            .text
            .ends_with(&text)
    );
}

/// Names made of the parts that mean something.
fn odd_name() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "<",
        ">",
        "d",
        "b",
        "g",
        "__",
        "`",
        "1",
        "#",
        "|",
        ".",
        "-",
        "+",
        "$",
        "M",
        "é",
        ",",
        " ",
        "[",
        "]",
        "<>c",
        ">d__0",
        "VB$StateMachine_",
        "_Lambda$__",
        "_Closure$__",
        "<Main>$",
        "$VB$ResumableLocal_",
        "5__",
    ]);
    prop::collection::vec(part, 0..16).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_name_panics_or_vanishes(
        namespace in odd_name(),
        segments in prop::collection::vec(prop_oneof![odd_name(), any::<String>()], 0..5),
        args in prop::collection::vec(odd_name(), 0..4),
        name in prop_oneof![odd_name(), any::<String>()],
    ) {
        let path = TypePath { namespace, segments };
        let machine = state_machine_method(&path, &args);
        prop_assert!(!machine.text.is_empty());
        prop_assert!(!machine.is_lambda || machine.text.ends_with(" lambda"));
        prop_assert!(!method(&path, &args, &name, &args).is_empty());
        prop_assert!(!simple_type_name(&name).is_empty());
        if let Some(local) = hoisted_local(&name) {
            prop_assert_ne!(local.source_name(), Some(""));
        }
    }
}
