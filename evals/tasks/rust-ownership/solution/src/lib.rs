//! Parcels and their labels.

#[derive(Debug, PartialEq)]
pub struct Parcel {
    pub to: String,
    pub grams: u32,
}

/// All parcels, and the heaviest weight among them.
pub fn pack(to: String, weights: Vec<u32>) -> (Vec<Parcel>, u32) {
    let mut parcels = Vec::new();
    for &grams in &weights {
        parcels.push(Parcel { to: to.clone(), grams });
    }
    let heaviest = weights.iter().copied().max().unwrap_or(0);
    (parcels, heaviest)
}

/// Adds to each parcel what its box weighs, and returns the sum.
pub fn add_boxes(parcels: &mut Vec<Parcel>, grams: u32) -> u32 {
    for parcel in parcels.iter_mut() {
        parcel.grams += grams;
    }
    parcels.iter().map(|parcel| parcel.grams).sum()
}
