//! Suspension points of runtime-async methods (.NET 11): which method, which await.
//!
//! A continuation names a ResumeInfo: the function that resumes the method, and an address inside the method's code that
//! stands for the suspension point. For code of the JIT it lies behind the code itself; for code of images in the image's
//! data, which reduced dumps lack: then a list that comes with the tool tells what stood there.

use super::debug_info::{AwaitNumber, DebugInfo};
use super::image_points::ImagePoint;
use super::known_points;
use super::method::MethodRef;
use super::range::{Code, CodeKind};
use crate::bodies::method_il;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use asynctriage_image::r2r::ReadyToRun;
use asynctriage_metadata::names;
use asynctriage_metadata::{Table, Token};
use std::sync::Arc;

/// What stands for the generic arguments of shared code.
pub(super) const CANON: &str = "__Canon";

/// How a suspension point got its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamedBy {
    /// The JIT's code and its debug info, in the dump.
    Jit,
    /// The image's data, in the dump or in a file laid under it.
    Image,
    /// The list of suspension points of .NET's own images that comes with the tool.
    List,
    /// Nothing: the image's data is not there.
    Nothing,
}

/// A place where a method suspends.
#[derive(Clone, Debug)]
pub struct ResumePoint {
    /// Address of the ResumeInfo.
    pub info: Addr,
    /// The address inside the method's code that stands for the point; the async profiler records it as the frame.
    pub ip: Option<Addr>,
    /// The method, when it is known.
    pub method: Option<MethodRef>,
    /// What it is called: with generic arguments as far as shared code tells them, else `Module.dll+0xRVA`.
    pub name: Arc<str>,
    /// Whether the method is declared async; `None` when that is not known. Others return tasks without being async:
    /// the runtime makes suspensible forms of them, too.
    pub is_async: Option<bool>,
    /// IL offset of the await.
    pub il_offset: Option<u32>,
    /// Which await of the method it is: its place among the awaits in the method's IL, from there or from a list, else
    /// as far as the compiled code tells.
    pub await_index: Option<AwaitNumber>,
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
        let point = Arc::new(self.make_point(info));
        if let Ok(mut known) = known.write() {
            known.insert(info, Arc::clone(&point));
        }
        point
    }

    fn make_point(&self, info: Addr) -> ResumePoint {
        let listed = self.listed(info);
        let field = self.layout().get("ResumeInfo", "DiagnosticIP");
        let in_dump = field
            .and_then(|o| self.memory.ptr(info + o))
            .and_then(Addr::non_null);
        let listed_ip = listed.as_ref().map(|l| l.image + u64::from(l.point.ip));
        let look_up = |ip: Addr| {
            let code = self.code_at(ip)?;
            let method = self.method_of_desc(code.desc)?;
            Some((ip, code, method))
        };
        // bytes of a file laid under the dump may not be relocated: then only the list tells
        let found = in_dump.and_then(look_up);
        let named_by = if found.is_some() {
            NamedBy::Image
        } else {
            NamedBy::List
        };
        // an address that no code has may be one that is not relocated
        let ip = found.as_ref().map(|(ip, ..)| *ip).or(listed_ip);
        let in_code = found.or_else(|| listed_ip.and_then(look_up));
        let mut point = ResumePoint {
            info,
            ip,
            method: None,
            name: Arc::default(),
            is_async: None,
            il_offset: None,
            await_index: None,
            variables: Vec::new(),
            named_by,
        };
        if let Some((ip, code, method)) = in_code {
            self.fill_from_code(&mut point, ip, &code, method);
            if let Some(listed) = &listed {
                point.fill_from_list(&listed.point);
            }
        } else if let Some((listed, name)) =
            listed.and_then(|l| self.name_of(&l).map(|name| (l, name)))
        {
            point.name = name.into();
            point.named_by = NamedBy::List;
            point.is_async = self.declared_async(listed.module, listed.point.rid);
            point.fill_from_list(&listed.point);
        } else {
            point.name = self.place_of(info).into();
            point.named_by = NamedBy::Nothing;
        }
        point
    }

    fn fill_from_code(&self, point: &mut ResumePoint, ip: Addr, code: &Code, method: MethodRef) {
        point.name = self.method_name(&method);
        point.is_async = self.declared_async(method.module, method.rid);
        point.method = Some(method);
        if matches!(code.kind, CodeKind::Jit { .. }) {
            point.named_by = NamedBy::Jit;
        }
        let native = ip.since(code.start).and_then(|n| u32::try_from(n).ok());
        let (Some(native), Some(debug)) = (native, self.debug_info(code, &method)) else {
            return;
        };
        point.il_offset = debug.suspension_il(native);
        point.await_index = point
            .il_offset
            .and_then(|il| self.await_index(&method, &debug, il));
        let here = debug.points.into_iter().find(|p| p.native == native);
        point.variables = here.map(|p| p.variables).unwrap_or_default();
    }

    fn declared_async(&self, module: Addr, rid: u32) -> Option<bool> {
        let method = self.module(module).metadata.as_ref()?.method(rid)?;
        Some(method.is_runtime_async())
    }

    pub(super) fn debug_info(&self, code: &Code, method: &MethodRef) -> Option<DebugInfo> {
        let at = match code.kind {
            CodeKind::Jit { header } => self
                .memory
                .ptr(header + self.offsets.code_header.debug_info)?
                .non_null()?,
            CodeKind::ReadyToRun { image } => {
                let rva = u32::try_from(code.start.since(image)?).ok()?;
                let image = self
                    .module_image(method.module)
                    .filter(|i| i.base == image)?;
                let compiled = ReadyToRun::of(self.memory, &image)?;
                compiled.debug_info(compiled.function_at(rva)?)?
            }
        };
        DebugInfo::read(self.memory, at)
    }

    fn await_index(&self, method: &MethodRef, debug: &DebugInfo, il: u32) -> Option<AwaitNumber> {
        if let Some(sites) = self.await_sites(method) {
            return rank(&sites, il).map(AwaitNumber::Exact);
        }
        // code of the JIT suspends at the same places of the IL as that of the image
        let module = self.module(method.module);
        let mvid = module.metadata.as_ref().and_then(|m| m.mvid());
        let known = mvid.and_then(|mvid| {
            known_points::await_at(&mvid, method.rid, il)
                .or_else(|| self.points.await_at(&mvid, method.rid, il))
        });
        known
            .map(AwaitNumber::Exact)
            .or_else(|| debug.await_number(il))
    }

    /// IL offsets of a method's awaits; `None` when its IL is not in the dump.
    fn await_sites(&self, method: &MethodRef) -> Option<Vec<u32>> {
        let module = self.module(method.module);
        let metadata = module.metadata.as_ref()?;
        let image = self.module_image(method.module)?;
        let code = method_il(self.memory, &image, metadata, method.rid)?;
        Some(metadata.await_sites(&code))
    }

    /// What the list says of a ResumeInfo inside an image.
    fn listed(&self, info: Addr) -> Option<Listed> {
        let section = self.code_section(info)?;
        let module = section.module.non_null()?;
        let mvid = self.module(module).metadata.as_ref()?.mvid()?;
        let rva = u32::try_from(info.since(section.begin)?).ok()?;
        Some(Listed {
            module,
            image: section.begin,
            point: known_points::find(&mvid, rva).or_else(|| self.points.find(&mvid, rva))?,
        })
    }

    /// The name of a listed method whose code the runtime's maps do not tell.
    fn name_of(&self, listed: &Listed) -> Option<String> {
        let module = self.module(listed.module);
        let metadata = module.metadata.as_ref()?;
        let method = metadata.method(listed.point.rid)?;
        let owner = metadata.method_owner(listed.point.rid)?;
        let path = metadata.type_path(owner)?;
        let shared = |table, rid| {
            let parameters = metadata.generic_params(Token::new(table, rid));
            parameters.map(|_| CANON.to_owned()).collect::<Vec<_>>()
        };
        let args = shared(Table::TypeDef, owner);
        let own = shared(Table::MethodDef, listed.point.rid);
        Some(names::method(&path, &args, &method.name, &own))
    }

    /// `Module.dll+0xRVA` of a ResumeInfo in an image.
    fn place_of(&self, info: Addr) -> String {
        let files = &self.dump.files;
        let file = files.iter().find(|f| f.start <= info && info < f.end);
        let name = file.and_then(|f| {
            let base = files
                .iter()
                .find(|b| b.path == f.path && b.file_offset == 0)?;
            let short = f.path.rsplit(['/', '\\']).next()?;
            Some(format!("{short}+0x{:x}", info.since(base.start)?))
        });
        name.unwrap_or_else(|| format!("method at {info}"))
    }
}

/// A suspension point that the list knows.
struct Listed {
    module: Addr,
    /// Load address of the image.
    image: Addr,
    point: ImagePoint,
}

impl ResumePoint {
    fn fill_from_list(&mut self, listed: &ImagePoint) {
        self.il_offset = listed.il_offset;
        self.await_index = listed.await_index.map(AwaitNumber::Exact);
    }
}

/// The first await at or behind an IL offset: optimised code may only tell the statement.
pub(super) fn rank(sites: &[u32], il: u32) -> Option<u32> {
    let before = sites.partition_point(|s| *s < il);
    u32::try_from(before).ok().filter(|_| before < sites.len())
}
