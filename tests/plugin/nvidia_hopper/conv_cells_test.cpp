// Cells of maps with few channels: which ones are chosen.
#include <gtest/gtest.h>

#include "nvidia_hopper/conv/cells.h"
#include "ops/conv/conv_shape.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using conv::conv_params_of;

// A square window over `channels` of 224 x 224 pixels.
std::optional<ConvHopperCells> cells_for(int64_t channels, int64_t window, int64_t stride,
                                         int64_t dilation = 1) {
  return cells_of(conv_params_of({.batch = 2,
                                  .big = channels,
                                  .small = 64,
                                  .y = 224,
                                  .x = 224,
                                  .window_y = window,
                                  .window_x = window,
                                  .stride_y = stride,
                                  .stride_x = stride,
                                  .pad_y = window / 2,
                                  .pad_x = window / 2,
                                  .dilation_y = dilation,
                                  .dilation_x = dilation}));
}

TEST(ConvHopperCells, FillCopiesOfFirstLayers) {
  struct Case {
    int64_t channels, window, stride, rows, columns, run, padded;
  };
  for (const Case& c : {Case{3, 7, 2, 2, 2, 4, 16},       // ResNet
                        Case{3, 3, 1, 3, 1, 3, 16},       // VGG, U-Net: one copy is the window
                        Case{3, 3, 2, 3, 2, 2, 24},       // MobileNet
                        Case{3, 4, 4, 4, 4, 1, 48},       // ConvNeXt
                        Case{3, 16, 16, 16, 16, 1, 768},  // ViT
                        Case{1, 5, 1, 5, 1, 5, 8}}) {     // digits
    SCOPED_TRACE(testing::Message() << c.channels << " channels, window " << c.window);
    const auto cells = cells_for(c.channels, c.window, c.stride);
    ASSERT_TRUE(cells);
    EXPECT_EQ(cells->rows, c.rows);
    EXPECT_EQ(cells->columns, c.columns);
    EXPECT_EQ(cells->run, c.run);
    EXPECT_EQ(cells->padded(), c.padded);
  }
}

TEST(ConvHopperCells, AreNotMadeWherePixelsDo) {
  EXPECT_FALSE(cells_for(16, 3, 1));
  EXPECT_FALSE(cells_for(3, 1, 1));
  EXPECT_FALSE(cells_for(3, 0, 1));      // nothing to sum
  EXPECT_FALSE(cells_for(3, 3, 1, 40));  // between the taps nothing is multiplied
}

// The first layer of ResNet is a window of four rows, one below the other, of 64 channels.
TEST(ConvHopperCells, MakeAProblemOfRuns) {
  const ConvParams g = conv_params_of({.batch = 2,
                                       .big = 3,
                                       .small = 64,
                                       .y = 224,
                                       .x = 224,
                                       .window_y = 7,
                                       .window_x = 7,
                                       .stride_y = 2,
                                       .stride_x = 2,
                                       .pad_y = 3,
                                       .pad_x = 3});
  const ConvParams to = params_of_cells(*cells_of(g), g);
  EXPECT_EQ(to.big_channels, 64);
  EXPECT_EQ(to.in[1], 115);
  EXPECT_EQ(to.in[2], 112);
  EXPECT_EQ(to.window[1], 4);
  EXPECT_EQ(to.window[2], 1);
  EXPECT_EQ(to.out[1], 112);
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_hopper
