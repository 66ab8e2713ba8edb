//! Sizes of windows and viewports.

use crate::chromium::cdp::{CdpError, Ignored, Session};
use serde_json::json;

/// Parses a window size `WIDTH,HEIGHT` in pixels. A missing side gets its default; each is clamped
/// to 100..=16384.
pub fn window(text: &str) -> (u32, u32) {
    let side = |part: Option<&str>, default: u32| {
        bounded(part.and_then(|text| text.trim().parse().ok()).unwrap_or(default))
    };
    let mut parts = text.split([',', 'x']);
    (side(parts.next(), 1440), side(parts.next(), 2000))
}

/// A side of a viewport in pixels that chromium can show.
pub fn bounded(side: u32) -> u32 {
    side.clamp(100, 16_384)
}

/// Height in pixels of what a window has above its viewport.
pub const BARS_HEIGHT: u32 = 87;

/// Pixels of the device for each of CSS, in all visits.
pub const DEVICE_SCALE: f64 = 1.0;

/// Sets the size of the tab's viewport in pixels, independent of its window, and that of the screen, if it
/// is not that of the browser.
pub async fn resize(
    session: &Session,
    (width, height): (u32, u32),
    screen: Option<(u32, u32)>,
) -> Result<(), CdpError> {
    let mut size = json!({"width": width, "height": height, "deviceScaleFactor": DEVICE_SCALE,
        "mobile": false});
    if let Some((width, height)) = screen {
        (size["screenWidth"], size["screenHeight"]) = (width.into(), height.into());
    }
    let _: Ignored = session.call("Emulation.setDeviceMetricsOverride", size).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_sizes_are_parsed_and_clamped() {
        assert_eq!(window("1440,2000"), (1440, 2000));
        assert_eq!(window(" 800x600 "), (800, 600));
        assert_eq!(window("0,99999999"), (100, 16384));
        assert_eq!(window("$(reboot)"), (1440, 2000));
    }
}
