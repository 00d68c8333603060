use super::align::{self, Alignment, Seen, SeenField};
use super::list::built_in;
use super::listed::{CoreLibBuild, Shape};
use crate::types::FieldKind;

fn build(label: &str) -> &'static CoreLibBuild {
    built_in().iter().find(|b| &*b.label == label).unwrap()
}

/// A process of a build that has loaded every type whose row `loaded` says.
fn process(build: &CoreLibBuild, loaded: impl Fn(u32) -> bool) -> Vec<Seen> {
    let mut row = 1_u32;
    let mut out = Vec::new();
    for (rid, ty) in (1..).zip(&build.types) {
        let fields = ty.fields.iter().map(|f| {
            let kind = match f.shape {
                Shape::Literal => None,
                Shape::Any | Shape::Reference => Some(FieldKind::Reference),
                Shape::Value => Some(FieldKind::ValueType),
                Shape::Primitive(size) => Some(FieldKind::Primitive(size)),
                Shape::Native => Some(FieldKind::Native),
            };
            row += 1;
            kind.map(|kind| SeenField {
                rid: row - 1,
                is_static: f.is_static,
                kind,
            })
        });
        let fields = fields.collect::<Vec<_>>().into_iter().flatten().collect();
        if loaded(rid) {
            out.push(Seen {
                rid,
                parent: ty.parent,
                fields,
                first_method: None,
            });
        }
    }
    out
}

/// Types that were named, and named rightly.
fn named(of: &CoreLibBuild, by: &CoreLibBuild, alignment: &Alignment) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    for (rid, listed) in &alignment.rows {
        let (real, said) = (of.get(*rid).unwrap(), by.get(*listed).unwrap());
        if (&real.name, &real.namespace) != (&said.name, &said.namespace) {
            wrong.push(format!("{} is called {}", real.name, said.name));
        }
    }
    (alignment.rows.len(), wrong)
}

#[test]
fn another_build_is_recognised() {
    for (of, by) in [
        ("10.0.15 windows-x64", "10.0.15 linux-x64"),
        ("10.0.15 linux-arm64", "10.0.15 windows-x64"),
        ("10.0.15 linux-x64", "10.0.15 linux-arm64"),
    ] {
        let (of, by) = (build(of), build(by));
        let seen = process(of, |rid| rid % 5 == 0 || rid % 7 == 0);
        let alignment = align::align(by, &seen);
        let (all, wrong) = named(of, by, &alignment);
        assert!(
            wrong.len() * 100 <= all,
            "{}: {wrong:#?} of {all}",
            of.label
        );
        let share = alignment.recognised * 100 / alignment.seen;
        assert!(share >= 65, "{}: {share} % recognised", of.label);
    }
}

#[test]
fn the_same_build_is_known_by_its_numbers() {
    let of = build("10.0.15 windows-x64");
    let seen = process(of, |rid| rid % 9 == 0);
    let same = align::same_rows(of, of.counts(), &seen).unwrap();
    assert!(same.exact && named(of, of, &same).1.is_empty());
    let [types, methods, fields] = of.counts();
    assert_eq!(
        align::same_rows(of, [types, methods, fields + 1], &seen),
        None
    );
    // as many rows, and other types
    let other = process(build("10.0.15 linux-x64"), |rid| rid % 9 == 0);
    assert_eq!(align::same_rows(of, of.counts(), &other), None);
}

#[test]
fn names_that_miss_the_suspended_methods_are_not_taken() {
    let build = build("10.0.15 linux-x64");
    let row = |namespace: &str, name: &str| {
        let rows = (1..).zip(&build.types);
        let mut named = rows.filter(|(_, t)| &*t.name == name && &*t.namespace == namespace);
        named.next().unwrap().0
    };
    let of_tasks = "System.Threading.Tasks";
    let (task, result) = (row(of_tasks, "Task"), row(of_tasks, "Task`1"));
    let of_boxes = row("", "AsyncStateMachineBox`1");
    let seen = process(build, |rid| [task, result, of_boxes].contains(&rid));
    let knows = |rows: &[u32]| {
        let alignment = Alignment {
            rows: rows.iter().map(|r| (*r, *r)).collect(),
            ..Alignment::default()
        };
        align::knows_suspended_methods(build, &alignment, &seen)
    };
    assert!(knows(&[task, result, of_boxes]));
    assert!(!knows(&[task, result]), "they would be other tasks");
    assert!(!knows(&[task]), "these, too");
    assert!(knows(&[]), "nothing is taken for a task");
}

#[test]
fn types_that_fit_nothing_are_not_named() {
    let field = |rid| SeenField {
        rid,
        is_static: true,
        kind: FieldKind::Primitive(2),
    };
    let seen: Vec<Seen> = (1..50)
        .map(|i| Seen {
            rid: i,
            parent: 0,
            fields: (i * 40..i * 40 + 30).map(field).collect(),
            first_method: None,
        })
        .collect();
    let alignment = align::align(build("10.0.15 linux-x64"), &seen);
    assert_eq!((alignment.recognised, alignment.rows.len()), (0, 0));
}
