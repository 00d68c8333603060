//! Entity Framework Core, over whichever database.

use super::Client;
use asynctriage_report::LeafKind;

pub(super) const CLIENT: Client = Client::new("Microsoft.EntityFrameworkCore.", LeafKind::Database);
