//! Suspension points of runtime-async methods (.NET 11): which method, which await.
//!
//! A continuation names a ResumeInfo: the function that resumes the method, and an address inside the method's code that
//! stands for the suspension point. For code of the JIT it lies behind the code itself.

use super::debug_info::DebugInfo;
use super::method::{IMPL_ASYNC, MethodRef};
use super::range::{Code, CodeKind};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use asynctriage_metadata::il;
use std::sync::Arc;

/// The longest method body that is read.
const MAX_IL: u64 = 1 << 20;

/// How a suspension point got its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamedBy {
    /// The JIT's code and its debug info, in the dump.
    Jit,
    /// The image's code, in the dump or in a file laid under it.
    Image,
    /// Nothing: the image's data is not there.
    Nothing,
}

/// How sure the number of the await is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexFrom {
    /// Its place among the awaits in the method's IL.
    Il,
    /// Its place among the suspensions that the compiled code has; the compiler may have left some out.
    Code,
}

/// A place where a method suspends.
#[derive(Clone, Debug)]
pub struct ResumePoint {
    /// Address of the ResumeInfo.
    pub info: Addr,
    /// The method, when it is known.
    pub method: Option<MethodRef>,
    /// What it is called: with generic arguments as far as shared code tells them, else `Module.dll+0xRVA`.
    pub name: Arc<str>,
    /// Whether the method is declared async; `None` when that is not known. Others return tasks without being async:
    /// the runtime makes suspensible forms of them, too.
    pub is_async: Option<bool>,
    /// IL offset of the await.
    pub il_offset: Option<u32>,
    /// Which await of the method it is, from 0, and how that is known.
    pub await_index: Option<(u32, IndexFrom)>,
    /// Variables that the continuation keeps: number (arguments first, `this` is 0) and offset in the object.
    pub variables: Vec<(i64, u32)>,
    /// How it was named.
    pub named_by: NamedBy,
}

impl Runtime<'_> {
    /// The suspension point that a ResumeInfo describes.
    #[must_use]
    pub fn resume_point(&self, info: Addr) -> Arc<ResumePoint> {
        let known = &self.code.points;
        if let Some(point) = known.read().ok().and_then(|k| k.get(&info).cloned()) {
            return point;
        }
        let point = Arc::new(
            self.point_in_code(info)
                .unwrap_or_else(|| self.unnamed_point(info)),
        );
        if let Ok(mut known) = known.write() {
            known.insert(info, Arc::clone(&point));
        }
        point
    }

    fn point_in_code(&self, info: Addr) -> Option<ResumePoint> {
        let resume = self.layout().get("ResumeInfo", "DiagnosticIP")?;
        let ip = self.memory.ptr(info + resume)?.non_null()?;
        let code = self.code_at(ip)?;
        let method = self.method_of_desc(code.desc)?;
        let native = u32::try_from(ip.since(code.start)?).ok()?;
        let debug = self.debug_info(&code);
        let il_offset = debug.as_ref().and_then(|d| d.bound_at(native)?.il);
        let variables = debug
            .as_ref()
            .and_then(|d| d.points.iter().find(|p| p.native == native))
            .map(|p| p.variables.clone())
            .unwrap_or_default();
        Some(ResumePoint {
            info,
            name: self.method_name(&method),
            is_async: self
                .method_definition(&method)
                .map(|d| d.impl_flags & IMPL_ASYNC != 0),
            il_offset,
            await_index: il_offset.and_then(|il| self.await_index(&method, debug.as_ref()?, il)),
            variables,
            named_by: match code.kind {
                CodeKind::Jit { .. } => NamedBy::Jit,
                CodeKind::ReadyToRun { .. } => NamedBy::Image,
            },
            method: Some(method),
        })
    }

    fn debug_info(&self, code: &Code) -> Option<DebugInfo> {
        let CodeKind::Jit { header } = code.kind else {
            return None;
        };
        let at = self
            .memory
            .ptr(header + self.offsets.code_header.debug_info)?;
        DebugInfo::read(self.memory, at.non_null()?)
    }

    /// The first await at or behind an IL offset: optimised code may only tell the statement.
    fn await_index(
        &self,
        method: &MethodRef,
        debug: &DebugInfo,
        il: u32,
    ) -> Option<(u32, IndexFrom)> {
        let rank = |sites: &[u32]| {
            let before = sites.partition_point(|s| *s < il);
            (before < sites.len()).then(|| u32::try_from(before).ok())?
        };
        match self.await_sites(method) {
            Some(sites) => Some((rank(&sites)?, IndexFrom::Il)),
            None => Some((rank(&debug.suspensions())?, IndexFrom::Code)),
        }
    }

    /// IL offsets of a method's awaits; `None` when its IL is not in the dump.
    fn await_sites(&self, method: &MethodRef) -> Option<Vec<u32>> {
        let m = self.memory;
        let module = self.module(method.module);
        let metadata = module.metadata.as_ref()?;
        let rva = metadata.method(method.rid)?.rva;
        let body = self.module_image(method.module)?.rva_to_addr(rva)?;
        let head: Vec<u8> = (0..il::BODY_HEADER as u64)
            .map_while(|i| m.u8(body + i))
            .collect();
        let (skip, size) = il::body_extent(&head)?;
        let code = m.bytes(body + u64::from(skip), size.into(), MAX_IL)?;
        Some(metadata.await_sites(&code))
    }

    fn unnamed_point(&self, info: Addr) -> ResumePoint {
        let files = &self.dump.files;
        let file = files.iter().find(|f| f.start <= info && info < f.end);
        let name = file.and_then(|f| {
            let base = files
                .iter()
                .find(|b| b.path == f.path && b.file_offset == 0)?;
            let short = f.path.rsplit(['/', '\\']).next()?;
            Some(format!("{short}+0x{:x}", info.since(base.start)?))
        });
        ResumePoint {
            info,
            method: None,
            name: name.unwrap_or_else(|| format!("method at {info}")).into(),
            is_async: None,
            il_offset: None,
            await_index: None,
            variables: Vec::new(),
            named_by: NamedBy::Nothing,
        }
    }
}
