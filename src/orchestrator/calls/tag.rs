//! Tags of crawls and pages that are there already.

use crate::bus::call::{Answer, Reply};
use crate::main_loop;
use crate::main_loop::action::CallerAction;
use crate::main_loop::order::{Order, UserCall};
use crate::main_loop::turn::{Turn, TurnResult, invalid};
use crate::work::bounds::check_tag;
use archivist_core::model::{Owner, PAGE_TAGS_MAX, TAGS_MAX};
use archivist_shared::bus::documents::report::Filter;

/// Gives a crawl or snapshot tags, and takes others away. Gets the number of tags that this changes.
pub(crate) struct ChangeTags {
    pub id: Owner,
    pub add: Vec<String>,
    pub remove: Vec<String>,
    pub user: u32,
}

impl Order for ChangeTags {
    fn carry_out(&self, turn: &mut Turn<'_>, _reply: &Reply) -> TurnResult<Option<Answer>> {
        Ok(Some(Answer::Number(change(turn, self)?)))
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        let about = std::slice::from_ref(&self.id);
        Some(UserCall { name: "Tag", user: Some(self.user), about })
    }
}

/// Gives a tag another name. Gets the number of pages that have it.
pub(crate) struct RenameTag {
    pub old: String,
    pub new: String,
    pub user: u32,
}

impl Order for RenameTag {
    fn carry_out(&self, turn: &mut Turn<'_>, _reply: &Reply) -> TurnResult<Option<Answer>> {
        Ok(Some(Answer::Number(rename(turn, &self.old, &self.new)?)))
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        UserCall::of("RenameTag", self.user)
    }
}

fn change(turn: &mut Turn<'_>, asked: &ChangeTags) -> TurnResult<u32> {
    let ChangeTags { id, add, remove, .. } = asked;
    require_no_fleet(turn)?;
    add.iter().try_for_each(|name| check_tag(name)).map_err(invalid)?;
    if let Some(both) = add.iter().find(|name| remove.contains(name)) {
        return Err(invalid(format!("the tag '{both}' is to be added and removed")));
    }
    let crawl = main_loop::crawl_of_owner(turn, *id)?.id;
    if turn.tx.is_being_deleted(crawl)? {
        return Err(invalid(format!("{crawl} is being deleted")));
    }
    let (mut tags, most) = match id {
        Owner::Crawl(crawl) => (turn.tx.tags("crawl", crawl.0)?, TAGS_MAX),
        Owner::Snapshot(page) => {
            let of_crawl = turn.tx.tags("crawl", crawl.0)?;
            if let Some(name) = remove.iter().find(|name| of_crawl.contains(name)) {
                return Err(invalid(format!(
                    "the tag '{name}' is one of {crawl}, of all its pages: archivist tag {crawl} --remove '{name}'"
                )));
            }
            (turn.tx.tags("snapshot", page.0)?, PAGE_TAGS_MAX)
        }
    };
    let mut changed = 0;
    for name in remove {
        changed += u32::from(turn.tx.untag(*id, name)?);
        tags.retain(|tag| tag != name);
    }
    for name in add {
        if tags.contains(name) {
            continue;
        }
        if tags.len() >= most {
            return Err(invalid(format!(
                "{id} has {most} tags, which is the most; '{name}' would be one more"
            )));
        }
        match id {
            // As when a crawl is added.
            Owner::Crawl(crawl) => {
                turn.tx.tag_crawl(*crawl, name)?;
                turn.tx.tag_given_pages(*crawl, name)?;
            }
            Owner::Snapshot(page) => drop(turn.tx.tag_snapshot(*page, name)?),
        }
        tags.push(name.clone());
        changed += 1;
    }
    if changed > 0 {
        turn.act(CallerAction::StatusChanged);
    }
    Ok(changed)
}

fn rename(turn: &mut Turn<'_>, old: &str, new: &str) -> TurnResult<u32> {
    require_no_fleet(turn)?;
    check_tag(new).map_err(invalid)?;
    // Pages that a rule keeps would be deleted, or those that another one deletes kept.
    for name in [old, new] {
        if let Some(setting) = turn.engine.settings.rule_of_tag(name) {
            return Err(invalid(format!(
                "{setting} in archivist.conf(5) has a rule for pages with the tag '{name}': change it first"
            )));
        }
    }
    let Some(pages) = pages_with(turn, old)? else {
        return Err(invalid(format!("no page has the tag '{old}'; see: archivist list tags")));
    };
    if pages_with(turn, new)?.is_some() {
        return Err(invalid(format!(
            "there are pages with the tag '{new}' already, which could not be told from the others afterwards; to join them: archivist tag $(archivist list snapshots --tag '{old}' --limit 0 --json | jq -r '.[].id') --add '{new}'"
        )));
    }
    turn.tx.rename_tag(old, new)?;
    Ok(pages)
}

/// The number of pages with a tag, of their own or of their crawl; `None` if nothing has it.
fn pages_with(turn: &Turn<'_>, name: &str) -> TurnResult<Option<u32>> {
    let filter = Filter { tag: Some(name.to_owned()), ..Filter::default() };
    let found = turn.tx.list_tags(&filter)?.pop();
    Ok(found.map(|tag| u32::try_from(tag.pages).unwrap_or(u32::MAX)))
}

fn require_no_fleet(turn: &Turn<'_>) -> TurnResult<()> {
    if turn.engine.settings.is_in_fleet() {
        let why = "this machine is a node of a fleet, where tags are given when pages are added, and not changed";
        return Err(invalid(why));
    }
    Ok(())
}
