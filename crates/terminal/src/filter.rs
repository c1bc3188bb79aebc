use client::Filter;
use domain::filter_parameters;

use crate::{Context, Failure};

/// The filter that the words mean. Each argument may hold several; one with a blank in it is written as in the console.
pub fn filter(words: &[String], context: &Context) -> Result<Filter, Failure> {
    let parameters = filter_parameters(&words.join(" "), context.clock.now())?;
    Ok(parameters.into_iter().fold(Filter::new(), |filter, (name, value)| filter.with(name, value)))
}
