//! `sealstone completions SHELL` and `sealstone man`.

use super::args::definition;
use super::output::{End, Output};

pub fn completions(shell: clap_complete::Shell, output: &mut Output) -> Result<u8, End> {
    // Rendered whole first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "sealstone", &mut script);
    std::io::Write::write_all(output.stdout(), &script)?;
    Ok(0)
}

pub fn manual(output: &mut Output) -> Result<u8, End> {
    clap_mangen::Man::new(definition()).render(output.stdout())?;
    Ok(0)
}
